// Status and Result<T>: how every pagejit function reports failure. Nothing throws across the
// library boundary. A success costs one null pointer; a failure owns a message that says what
// failed, with which values, and what is legal. Thread-safety: values; const access from several
// threads is safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pagejit/export.h"

namespace pagejit {

// Stable numbers: callers may switch on them, store them, and see them in logs.
enum class StatusCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // a value that is never legal; the message names it and says what is
  kUnsupported = 2,      // legal, but not served by this version, target or GPU: use a fallback
  kNotFound = 3,         // a file, a library, a GPU that was asked for is not there
  kCompileFailed =
      4,  // the compiler refused the source; detail() has log, options and numbered source
  kCompilerUnavailable = 5,  // no NVRTC (or C++ compiler for "host"), or one too old
  kDriverUnavailable = 6,    // no CUDA driver, one too old, or none that works
  kDriverError = 7,          // a driver call failed; the message has the CUresult's name
  kCacheError = 8,           // the cache directory cannot be used (never fatal to prepare)
  kDataCorrupt = 9,          // stored bytes fail their checksum or grammar
  kWorkspace = 10,           // workspace missing, too small or not initialised
  kDeviceCheckFailed =
      11,  // a debug kernel found a bad value on the device; the message says where
  kCancelled = 12,
  // Out of memory (any function may return it), or a defect of pagejit: please report that with the
  // message. Not named again beside the functions.
  kInternal = 13,
  kDenied = 14,  // a kernel is not ready, and the policy or a capture forbids making it so (jit.h)
};

// The enumerator's name in lower case words, e.g. "invalid argument". Never null.
PAGEJIT_EXPORT std::string_view status_code_name(StatusCode code);

// What is known of a failure beside its texts; empty or 0 where it does not apply.
struct FailureFacts {
  std::string spec = {};     // canonical_text() of the kernel that was asked for
  std::string log = {};      // of a failed compile: what the compiler said,
  std::string options = {};  // its options, for the target "host" the command, one word a line,
  std::string source = {};   // and what it was given
  int cuda_result = 0;       // the CUresult of the driver call that failed
};

class [[nodiscard]] PAGEJIT_EXPORT Status {
 public:
  Status() = default;  // success
  Status(StatusCode code, std::string message, std::string detail = {}, FailureFacts facts = {});

  static Status ok() { return {}; }
  // kInternal, "out of memory". Allocates nothing.
  static Status out_of_memory() noexcept;
  bool is_ok() const { return state_ == nullptr; }
  explicit operator bool() const { return is_ok(); }

  StatusCode code() const { return state_ ? state_->code : StatusCode::kOk; }
  // One sentence. Empty on success.
  const std::string& message() const;
  // Long text where there is one (a compile log with options and numbered source); else empty.
  const std::string& detail() const;
  const FailureFacts& facts() const;
  // "invalid argument: head_size 100: must be ..."; "ok" on success.
  std::string to_string() const;

  // The same status with "context: " before the message; success stays success.
  Status with_context(std::string_view context) const;
  // The same failure with another message, or of another kernel; success stays success.
  Status with_message(std::string message) const;
  Status with_spec(std::string spec) const;

 private:
  struct State {
    StatusCode code;
    std::string message;
    std::string detail;
    FailureFacts facts;
  };
  std::shared_ptr<const State> state_;  // null = ok; shared so that copies of an error are cheap
};

// A value or the reason why there is none. value() may be called only when is_ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace pagejit
