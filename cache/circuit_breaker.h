// CircuitBreaker: whether something that keeps failing is to be tried again yet. After some
// failures in a row it is left alone for a while, which doubles each time; then one call tries.
// Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "cache/fork_guard.h"

namespace pagejit::cache {

struct CircuitBreakerOptions {
  int max_failures = 3;  // in a row: one may be chance, and each costs its caller a time limit
  std::chrono::milliseconds first_pause{5'000};  // a restart of a server takes about this long
  std::chrono::milliseconds max_pause{300'000};  // so that a server that is back is soon used
  std::function<std::chrono::steady_clock::time_point()> clock;  // null = the real one
};

struct CircuitBreakerStats {
  bool is_open = false;                // left alone, or being tried by one call
  std::chrono::milliseconds pause{0};  // the present or next one, from its beginning; 0 = closed
  uint64_t times_opened = 0;           // each failed try of an open one included
  uint64_t refused = 0;                // calls of allow() that yielded false
};

class CircuitBreaker {
 public:
  explicit CircuitBreaker(CircuitBreakerOptions options);

  // Whether to try now. After true, succeeded() or failed() is called; should that never happen,
  // the next try is allowed after another pause.
  bool allow();
  // It answered.
  void succeeded();
  // True where this failure opened it, or kept it open.
  bool failed();

  CircuitBreakerStats stats() const;

 private:
  CircuitBreakerOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  const ForkGuard fork_guard_{mutex_};
  int failures_ = 0;                    // in a row
  std::chrono::milliseconds pause_{0};  // 0 = closed
  bool is_trying_ = false;              // open, and one call tries
  std::chrono::steady_clock::time_point try_again_at_{};
  uint64_t times_opened_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace pagejit::cache
