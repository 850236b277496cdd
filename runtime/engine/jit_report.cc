#include "runtime/engine/jit_report.h"

#include <string_view>

#include "generator/families.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

std::string_view policy_name(JitPolicy policy) {
  switch (policy) {
    case JitPolicy::kOn:
      return "on";
    case JitPolicy::kWarn:
      return "warn";
    case JitPolicy::kError:
      return "error";
    case JitPolicy::kOff:
      return "off";
  }
  return "unknown";
}

}  // namespace

JitReport::~JitReport() {
  try {
    if (recorder_ != nullptr && recorder_->is_on() && target_) recorder_->record(spec_, *target_);
  } catch (...) {  // out of memory
  }
  for (const JitEvent& event : events_) {
    try {
      tell(event);
    } catch (...) {  // out of memory, or a callback that throws: telling never fails the call
    }
  }
}

void JitReport::hit(const Target& target, const std::string& key, ImageOrigin origin,
                    double duration_ms) {
  target_ = target;
  // Most calls: no string is made for nobody.
  if (!options_.on_event && !logger_.enabled(LogLevel::kDebug)) return;
  JitEvent& event = add(JitEventKind::kHit, target, key);
  event.origin = origin;
  event.duration_ms = duration_ms;
}

void JitReport::compiled(const Target& target, const CompileRecord& record, const Status& status) {
  target_ = target;
  JitEvent& event = add(JitEventKind::kCompile, target, record.key);
  event.duration_ms = record.wall_ms;
  event.status = status;
}

Status JitReport::denied_by_policy(const Target& target, const std::string& key) const {
  const std::string name = target.to_string();
  return Status(
      StatusCode::kDenied,
      format(
          "{} for {} is not stored (key {}), and PAGEJIT_JIT (EngineOptions::jit) is {}, so that "
          "it is not compiled: compile it ahead, by `pagejit precompile --arch {} ...` or "
          "Engine::precompile()",
          text_of(spec_), name, key, policy_name(options_.jit), name));
}

Status JitReport::denied_in_capture() const {
  return Status(StatusCode::kDenied,
                format("{} is not ready, and the stream is being captured, which compiling or "
                       "loading it would break: prepare it before the capture begins",
                       text_of(spec_)));
}

void JitReport::refused(const Target& target, const std::string& key, double duration_ms,
                        const Status& status) {
  target_ = target;
  if (options_.jit == JitPolicy::kOff) return;
  JitEvent& event = add(JitEventKind::kDenied, target, key);
  event.duration_ms = duration_ms;
  event.status = status;
}

JitEvent& JitReport::add(JitEventKind kind, const Target& target, const std::string& key) {
  JitEvent& event = events_.emplace_back();
  event.kind = kind;
  event.spec = text_of(spec_);
  event.target = target;
  event.key = key;
  event.precompiling = call_ == Call::kPrecompile;
  return event;
}

void JitReport::tell(const JitEvent& event) const {
  const bool warns = options_.jit == JitPolicy::kWarn && call_ == Call::kPrepare;
  if (event.kind == JitEventKind::kCompile && warns) {
    logger_.warning(format("{} at run time: {} for {} in {:.0f} ms (key {})",
                           event.status ? "compiled" : "failed to compile", event.spec,
                           event.target.to_string(), event.duration_ms, event.key));
  }
  if (event.kind == JitEventKind::kHit && logger_.enabled(LogLevel::kDebug)) {
    logger_.debug(format("found {} for {} ({}) in {:.3f} ms (key {})", event.spec,
                         event.target.to_string(), origin_name(event.origin), event.duration_ms,
                         event.key));
  }
  if (event.kind == JitEventKind::kDenied) logger_.error(event.status.message());
  if (options_.on_event) options_.on_event(event);
}

}  // namespace pagejit
