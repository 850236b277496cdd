#include "runtime/engine/async_prepares.h"

#include <algorithm>
#include <thread>

#include "runtime/guard.h"

namespace pagejit {
namespace {

// Enough for a few stored kernels at a time: reading and loading one takes about a millisecond.
constexpr int kReservedThreads = 2;
// As CompilePool's default.
constexpr int kMostCompileThreadsByDefault = 16;

int threads_for(int compile_threads) {
  if (compile_threads <= 0) {
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    compile_threads = std::clamp(processors, 1, kMostCompileThreadsByDefault);
  }
  return compile_threads + kReservedThreads;
}

}  // namespace

bool AsyncRequest::join(const std::shared_ptr<AsyncWaiter>& waiter, JobPriority priority) {
  if (is_over_ || !is_of_this_process()) return false;
  waiters_.push_back(waiter);
  // Written under the table's mutex and by SingleFlight, which only raises it too.
  const int wanted = static_cast<int>(priority);
  int now = priority_->load();
  while (wanted > now && !priority_->compare_exchange_weak(now, wanted)) {
  }
  return true;
}

void AsyncRequest::leave(const AsyncWaiter* waiter) {
  std::shared_ptr<AsyncWaiter> left;     // destroyed after the lock is released
  std::shared_ptr<AsyncRequest> myself;  // likewise
  bool was_last = false;
  const CallScope scope(*table_->guard);
  if (!scope.status()) return;
  {
    const std::lock_guard lock(table_->mutex);
    const auto found =
        std::find_if(waiters_.begin(), waiters_.end(),
                     [waiter](const auto& candidate) { return candidate.get() == waiter; });
    if (found == waiters_.end()) return;
    left = std::move(*found);
    waiters_.erase(found);
    was_last = waiters_.empty();
    if (was_last) {
      is_over_ = true;
      if (const auto slot = table_->requests.find(key_);
          slot != table_->requests.end() && slot->second.get() == this) {
        myself = std::move(slot->second);
        table_->requests.erase(slot);
      }
    }
  }
  if (was_last) request_stop();
}

std::vector<std::shared_ptr<AsyncWaiter>> AsyncRequest::finish() {
  std::shared_ptr<AsyncRequest> myself;
  const std::lock_guard lock(table_->mutex);
  is_over_ = true;
  if (const auto slot = table_->requests.find(key_);
      slot != table_->requests.end() && slot->second.get() == this) {
    myself = std::move(slot->second);
    table_->requests.erase(slot);
  }
  return std::move(waiters_);
}

AsyncPrepares::AsyncPrepares(int compile_threads, std::shared_ptr<CallCount> guard)
    : table_(std::make_shared<AsyncTable>(std::move(guard))),
      pool_({.threads = threads_for(compile_threads),
             .reserved = kReservedThreads,
             .thread_name = "pagejit-prepare"}) {}

AsyncPrepares::~AsyncPrepares() {
  for (;;) {
    std::shared_ptr<AsyncRequest> request;
    {
      const std::lock_guard lock(table_->mutex);
      if (table_->requests.empty()) return;
      request = table_->requests.begin()->second;
    }
    const std::vector<std::shared_ptr<AsyncWaiter>> waiters = request->finish();
    if (!request->is_of_this_process()) continue;  // the parent tells them
    for (const std::shared_ptr<AsyncWaiter>& waiter : waiters) {
      waiter->fail(
          guarded([] { return Status(StatusCode::kCancelled, "the engine is being destroyed"); }));
    }
    request->request_stop();
  }
}

}  // namespace pagejit
