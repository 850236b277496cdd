// format(): text by fmt's format strings, checked when they are compiled. Only format.cc compiles
// fmt itself, whose headers cost each file that includes them whole some seconds. For the types
// that fmt/core.h formats: numbers, texts, pointers. Thread-safety: a pure function.
#pragma once

#include <fmt/core.h>

#include <string>

namespace pagejit {

std::string format_arguments(fmt::string_view text, fmt::format_args arguments);

// As fmt::format().
template <class... Arguments>
std::string format(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return format_arguments(text, fmt::make_format_args(arguments...));
}

}  // namespace pagejit
