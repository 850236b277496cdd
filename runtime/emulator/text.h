// text: printf into a string. The emulator's library stands alone, without fmt. Thread-safety: a
// pure function.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

namespace pagejit_emulator {

[[gnu::format(printf, 1, 2)]] inline std::string text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string result(static_cast<size_t>(length < 0 ? 0 : length), '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, again);
  va_end(again);
  return result;
}

}  // namespace pagejit_emulator
