// Logger: where an engine's log lines go (spdlog behind it, to standard error or to the caller's
// callback). Not a global: each engine has its own. Nothing else in the library prints.
// Thread-safety: log() may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "pagejit/engine.h"

namespace pagejit {

using LogCallback = std::function<void(LogLevel, std::string_view)>;

class Logger {
 public:
  // An empty callback means standard error.
  Logger(LogLevel level, LogCallback callback);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool enabled(LogLevel level) const { return level >= level_ && level_ != LogLevel::kOff; }
  // Never throws: a line that cannot be written is dropped.
  void log(LogLevel level, std::string_view line) const noexcept;

  void debug(std::string_view line) const noexcept { log(LogLevel::kDebug, line); }
  void info(std::string_view line) const noexcept { log(LogLevel::kInfo, line); }
  void warning(std::string_view line) const noexcept { log(LogLevel::kWarning, line); }
  void error(std::string_view line) const noexcept { log(LogLevel::kError, line); }

 private:
  struct Impl;
  LogLevel level_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagejit
