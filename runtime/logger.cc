#include "runtime/logger.h"

#include <spdlog/details/console_globals.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <utility>

#include "cache/fork_guard.h"

namespace pagejit {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return LogLevel::kDebug;
  if (level == spdlog::level::info) return LogLevel::kInfo;
  if (level == spdlog::level::warn) return LogLevel::kWarning;
  return LogLevel::kError;
}

// Hands each line to the caller's callback, unformatted, under no mutex of its own.
class CallbackSink final : public spdlog::sinks::sink {
 public:
  explicit CallbackSink(LogCallback callback) : callback_(std::move(callback)) {}

  void log(const spdlog::details::log_msg& message) override {
    callback_(from_spdlog(message.level),
              std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  LogCallback callback_;
};

}  // namespace

struct Logger::Impl {
  explicit Impl(spdlog::sink_ptr sink) : logger("pagejit", std::move(sink)) {}
  spdlog::logger logger;
};

Logger::Logger(LogLevel level, LogCallback callback) : level_(level) {
  spdlog::sink_ptr sink;
  if (callback) {
    sink = std::make_shared<CallbackSink>(std::move(callback));
  } else {
    // One for all of these sinks: guarded once.
    static const cache::ForkGuard guard(spdlog::details::console_mutex::mutex());
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  impl_ = std::make_unique<Impl>(std::move(sink));
  impl_->logger.set_pattern("[%n] %l: %v");
  impl_->logger.set_level(to_spdlog(level));
  impl_->logger.set_error_handler([](const std::string&) {});  // a failed line is dropped
}

Logger::~Logger() = default;

void Logger::log(LogLevel level, std::string_view line) const noexcept {
  if (!enabled(level)) return;
  try {
    impl_->logger.log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {  // out of memory, or a callback that throws: logging never fails its caller
  }
}

}  // namespace pagejit
