// "%p" in the paths of files that each process writes for itself. Thread-safety: pure functions.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace pagejit {

inline constexpr std::string_view kProcessMark = "%p";

inline bool has_process_mark(std::string_view path) {
  return path.find(kProcessMark) != std::string_view::npos;
}

// Each mark replaced by the number of the process.
inline std::string with_process(std::string path, pid_t process) {
  const std::string number = std::to_string(process);
  for (size_t at = 0; (at = path.find(kProcessMark, at)) != std::string::npos;
       at += number.size()) {
    path.replace(at, kProcessMark.size(), number);
  }
  return path;
}

}  // namespace pagejit
