// JitReport: what one call of prepare() or precompile() hit, compiled or was refused, told as
// events and log lines when the call is over and holds no lock. Thread-safety: belongs to its call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/engine/image_store.h"
#include "runtime/engine/trace_recorder.h"
#include "runtime/logger.h"

namespace pagejit {

class JitReport {
 public:
  enum class Call : uint8_t { kPrepare = 0, kPrecompile = 1 };

  // To be made before any lock is taken; all arguments must outlive it. `recorder`: is told of the
  // kernel that was asked for, whether it was there or not; may be null.
  JitReport(const EngineOptions& options, const Logger& logger, const AnySpec& spec, Call call,
            TraceRecorder* recorder = nullptr)
      : options_(options), logger_(logger), spec_(spec), call_(call), recorder_(recorder) {}
  ~JitReport();  // tells; drops what a callback throws
  JitReport(const JitReport&) = delete;
  JitReport& operator=(const JitReport&) = delete;

  bool may_compile() const {
    return call_ == Call::kPrecompile || options_.jit == JitPolicy::kOn ||
           options_.jit == JitPolicy::kWarn;
  }

  void hit(const Target& target, const std::string& key, ImageOrigin origin, double duration_ms);
  // Of a compile that this call made itself.
  void compiled(const Target& target, const CompileRecord& record, const Status& status);
  // Returns the kDenied of a kernel that is not stored, for the policy's sake; tells nothing.
  Status denied_by_policy(const Target& target, const std::string& key) const;
  // The same during a capture.
  Status denied_in_capture() const;
  void refused(const Target& target, const std::string& key, double duration_ms,
               const Status& status);

 private:
  JitEvent& add(JitEventKind kind, const Target& target, const std::string& key);
  void tell(const JitEvent& event) const;

  const EngineOptions& options_;
  const Logger& logger_;
  const AnySpec& spec_;
  const Call call_;
  TraceRecorder* const recorder_;
  std::optional<Target> target_;  // the last one that was looked for
  std::vector<JitEvent> events_;
};

}  // namespace pagejit
