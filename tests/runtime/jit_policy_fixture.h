// What the tests of EngineOptions::jit share: engines under each policy, the events that they told.
// Thread-safety: the main thread of a test program; events are taken from any.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "tests/runtime/engine_fixture.h"

namespace pagejit {

inline constexpr KernelSpec kSpec{.group_size = 4};
inline constexpr JitPolicy kPolicies[] = {JitPolicy::kOn, JitPolicy::kWarn, JitPolicy::kError,
                                          JitPolicy::kOff};

class JitPolicyTest : public EngineTest {
 protected:
  static inline const Stream kStream = reinterpret_cast<Stream>(0x5000);
  static inline const Stream kOtherStream = reinterpret_cast<Stream>(0x6000);

  EngineOptions options_with(JitPolicy policy) {
    EngineOptions result = options();
    result.jit = policy;
    result.on_event = [this](const JitEvent& event) {
      std::lock_guard lock(event_mutex);
      events.push_back(event);
    };
    return result;
  }
  std::shared_ptr<Engine> engine_with(JitPolicy policy) {
    return make_engine(options_with(policy));
  }

  // Forgets what was told so far.
  std::vector<JitEvent> take_events() {
    std::lock_guard lock(event_mutex);
    return std::exchange(events, {});
  }
  std::vector<JitEventKind> take_kinds() {
    std::vector<JitEventKind> kinds;
    for (const JitEvent& event : take_events()) kinds.push_back(event.kind);
    return kinds;
  }

  // That of an engine of its own, which tells nothing.
  KernelInfo precompiled(const KernelSpec& spec = kSpec, const char* target = "sm_90a") {
    Result<KernelInfo> info = make_engine()->precompile(spec, *parse_target(target));
    EXPECT_TRUE(info) << info.status().to_string();
    nvrtc->compiles = nvrtc->openings = 0;
    std::lock_guard lock(log_mutex);
    log.clear();
    return info ? *info : KernelInfo();
  }

  size_t log_lines(LogLevel least) {
    std::lock_guard lock(log_mutex);
    size_t lines = 0;
    for (const auto& [level, line] : log) lines += level >= least ? 1 : 0;
    return lines;
  }

  std::mutex event_mutex;
  std::vector<JitEvent> events;
};

}  // namespace pagejit
