// ForkGuard: a mutex that a forked child never finds locked by a thread that it does not have. It
// says so of the mutex beside it: just before a fork the forking thread takes all guarded mutexes,
// and just after it both processes give them back. So what they guard is whole in the child too.
// Not for mutexes that are held for long: a fork waits for them, for a second at most, and then
// goes on without. Thread-safety: made and destroyed on any thread, before and after all use of the
// mutex.
#pragma once

#include <mutex>

namespace pagejit::cache {

class ForkGuard {
 public:
  // The mutex outlives this object, and has no other guard.
  explicit ForkGuard(std::mutex& mutex);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

 private:
  struct ForkHandlers;  // of the process; sees every guard

  std::mutex& mutex_;
  bool is_taken_ = false;  // by the handlers, during a fork
  ForkGuard* previous_ = nullptr;
  ForkGuard* next_ = nullptr;
};

}  // namespace pagejit::cache
