#include "cache/fork_guard.h"

#include <pthread.h>

#include <chrono>
#include <thread>

namespace pagejit::cache {

// A state of the process, since pthread_atfork's handlers take no argument. Its mutex is held
// during a fork, and else for a few instructions.
struct ForkGuard::ForkHandlers {
  static inline constinit std::mutex mutex;  // guards what follows
  static inline constinit ForkGuard* first = nullptr;

  // The thread that forks knows nothing of the order in which others take these mutexes. So it
  // holds none while it waits for one: it takes all, or gives back what it has and tries again.
  static bool try_take_all() {
    for (ForkGuard* guard = first; guard != nullptr; guard = guard->next_) {
      guard->is_taken_ = guard->mutex_.try_lock();
      if (guard->is_taken_) continue;
      release_all();
      return false;
    }
    return true;
  }

  static void release_all() {
    for (ForkGuard* guard = first; guard != nullptr; guard = guard->next_) {
      if (!guard->is_taken_) continue;
      guard->is_taken_ = false;
      guard->mutex_.unlock();
    }
  }

  static void before_fork() {
    using std::chrono::steady_clock;
    // Whoever forks inside a callback under one of the mutexes would wait for itself.
    static constexpr std::chrono::seconds kLongestWait{1};
    // They are held for microseconds.
    static constexpr std::chrono::microseconds kPause{50};
    const auto until = steady_clock::now() + kLongestWait;
    mutex.lock();
    while (!try_take_all() && steady_clock::now() < until) {
      // Who holds one of them may be about to make another guard.
      mutex.unlock();
      std::this_thread::sleep_for(kPause);
      mutex.lock();
    }
  }

  static void after_fork() {
    release_all();
    mutex.unlock();
  }

  // When the library is loaded: later, a fork could meet a registration half done. Where it fails
  // (no memory) a child may hang, as without guards.
  static const int registration_error;
};

const int ForkGuard::ForkHandlers::registration_error =
    ::pthread_atfork(ForkHandlers::before_fork, ForkHandlers::after_fork, ForkHandlers::after_fork);

ForkGuard::ForkGuard(std::mutex& mutex) : mutex_(mutex) {
  const std::lock_guard guard(ForkHandlers::mutex);
  next_ = ForkHandlers::first;
  if (next_ != nullptr) next_->previous_ = this;
  ForkHandlers::first = this;
}

ForkGuard::~ForkGuard() {
  const std::lock_guard guard(ForkHandlers::mutex);
  (previous_ != nullptr ? previous_->next_ : ForkHandlers::first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

}  // namespace pagejit::cache
