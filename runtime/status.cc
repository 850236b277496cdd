#include "pagejit/status.h"

namespace pagejit {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kCompileFailed:
      return "compile failed";
    case StatusCode::kCompilerUnavailable:
      return "compiler unavailable";
    case StatusCode::kDriverUnavailable:
      return "driver unavailable";
    case StatusCode::kDriverError:
      return "driver error";
    case StatusCode::kCacheError:
      return "cache error";
    case StatusCode::kDataCorrupt:
      return "data corrupt";
    case StatusCode::kWorkspace:
      return "workspace";
    case StatusCode::kDeviceCheckFailed:
      return "device check failed";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kInternal:
      return "internal error";
    case StatusCode::kDenied:
      return "denied";
  }
  return "unknown status";
}

namespace {
const std::string& empty_string() {
  static const std::string empty;
  return empty;
}
}  // namespace

Status::Status(StatusCode code, std::string message, std::string detail, FailureFacts facts) {
  if (code == StatusCode::kOk) return;
  state_ = std::make_shared<const State>(
      State{code, std::move(message), std::move(detail), std::move(facts)});
}

Status Status::out_of_memory() noexcept {
  // Owned by nobody and never destroyed. The text is short enough to lie in the string itself.
  union Kept {
    Kept() : state{StatusCode::kInternal, "out of memory", {}, {}} {}
    ~Kept() {}
    State state;
  };
  static const Kept kept;
  Status status;
  status.state_ = std::shared_ptr<const State>(std::shared_ptr<const State>(), &kept.state);
  return status;
}

const std::string& Status::message() const { return state_ ? state_->message : empty_string(); }
const std::string& Status::detail() const { return state_ ? state_->detail : empty_string(); }

const FailureFacts& Status::facts() const {
  static const FailureFacts none;
  return state_ ? state_->facts : none;
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  std::string text(status_code_name(code()));
  text += ": ";
  text += message();
  return text;
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return *this;
  std::string text(context);
  text += ": ";
  text += message();
  return with_message(std::move(text));
}

Status Status::with_message(std::string message) const {
  if (is_ok()) return *this;
  return Status(code(), std::move(message), detail(), facts());
}

Status Status::with_spec(std::string spec) const {
  if (is_ok()) return *this;
  FailureFacts named = facts();
  named.spec = std::move(spec);
  return Status(code(), message(), detail(), std::move(named));
}

}  // namespace pagejit
