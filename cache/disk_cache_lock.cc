// The waiting half of DiskCache.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>

#include "cache/disk_cache.h"

namespace pagejit::cache {

LockOutcome DiskCache::lock(const Key& key, const std::function<bool()>& is_published,
                            ProcessLock* lock, const std::stop_token& stop, bool* has_waited_here) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  // A waiter learns of the release by asking again. A compile takes 0.3 s and more, so 50 ms are
  // little to lose, and 20 looks a second are little to pay.
  static constexpr milliseconds kFirstPause{1};
  static constexpr milliseconds kLongestPause{50};

  bool unused = false;
  bool& has_waited = has_waited_here != nullptr ? *has_waited_here : unused;
  has_waited = false;
  lock->release();
  if (!directory_ || options_.read_only) return LockOutcome::kUnavailable;
  if (const IoStatus status = open_lock(lock); !status.is_ok()) return lock_failed(status);

  // Not options_.clock: whatever that does, this wait ends.
  const auto deadline = steady_clock::now() + options_.lock_timeout;
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const int error = lock->try_take(key);
    if (error != 0 && error != EAGAIN) {
      lock->release();
      return lock_failed(IoStatus::failure(error, "lock v1/lock"));
    }
    if (error == EAGAIN && !has_waited) {
      has_waited = true;
      const std::lock_guard guard(mutex_);
      ++stats_.lock_waits;
    }
    if (stop.stop_requested()) {
      lock->release();
      return LockOutcome::kStopped;
    }
    if (is_published()) {
      lock->release();
      const std::lock_guard guard(mutex_);
      if (has_waited) ++stats_.lock_wait_hits;
      return LockOutcome::kPublished;
    }
    if (error == 0) return LockOutcome::kTaken;
    const auto now = steady_clock::now();
    if (now >= deadline) {
      lock->release();
      const std::lock_guard guard(mutex_);
      ++stats_.lock_timeouts;
      return LockOutcome::kTimedOut;
    }
    std::this_thread::sleep_for(std::min<steady_clock::duration>(pause, deadline - now));
  }
}

IoStatus DiskCache::open_lock(ProcessLock* lock) const {
  try {
    FileDescriptor version;
    if (IoStatus status = directory_->open_version(/*create=*/true, &version); !status.is_ok()) {
      return status;
    }
    return lock->open(file_system_.get(), version.get());
  } catch (const std::exception& e) {  // std::bad_alloc
    return IoStatus::failure(ENOMEM, e.what());
  }
}

LockOutcome DiskCache::lock_failed(const IoStatus& status) {
  {
    const std::lock_guard guard(mutex_);
    ++stats_.lock_failures[status.error()];
  }
  if (!lock_failure_told_.test_and_set() && options_.on_lock_failure) {
    try {
      options_.on_lock_failure(status.to_status());
    } catch (...) {  // a caller's defect must not turn a missing lock into a failed request
    }
  }
  return LockOutcome::kUnavailable;
}

}  // namespace pagejit::cache
