// JobOptions: how urgent a job is and how it is cancelled; JobPhase: whether it has begun.
// Thread-safety: JobOptions is a plain value; JobPhase may be used from several threads at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <stop_token>

#include "pagejit/async.h"
#include "pagejit/status.h"

namespace pagejit::jit {

struct JobOptions {
  JobPriority priority = JobPriority::kNormal;
  // A stop is requested: nobody wants the result any more. By default that never happens.
  std::stop_token stop = {};
  // Where not null, a JobPriority as a number, which may grow while the job waits; the greater of
  // both counts.
  std::shared_ptr<std::atomic<int>> raised = nullptr;

  JobPriority now() const {
    if (raised == nullptr) return priority;
    return std::max(priority, static_cast<JobPriority>(raised->load(std::memory_order_relaxed)));
  }
};

// From waiting to either begun or withdrawn, by whoever is first.
class JobPhase {
 public:
  bool begin() { return leave(Phase::kBegun); }
  bool withdraw() { return leave(Phase::kWithdrawn); }
  bool is_withdrawn() const { return phase_.load() == Phase::kWithdrawn; }

 private:
  enum class Phase : uint8_t { kWaiting, kBegun, kWithdrawn };
  bool leave(Phase to) {
    Phase waiting = Phase::kWaiting;
    return phase_.compare_exchange_strong(waiting, to);
  }
  std::atomic<Phase> phase_{Phase::kWaiting};
};

inline Status cancelled_before_begin() {
  return Status(StatusCode::kCancelled, "the compile was cancelled before it began");
}

}  // namespace pagejit::jit
