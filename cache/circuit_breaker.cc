#include "cache/circuit_breaker.h"

#include <algorithm>
#include <utility>

namespace pagejit::cache {

CircuitBreaker::CircuitBreaker(CircuitBreakerOptions options) : options_(std::move(options)) {
  if (!options_.clock) options_.clock = std::chrono::steady_clock::now;
}

bool CircuitBreaker::allow() {
  const std::lock_guard lock(mutex_);
  if (pause_.count() == 0) return true;
  const auto now = options_.clock();
  if (now < try_again_at_) {
    ++refused_;
    return false;
  }
  try_again_at_ = now + pause_;  // for all others, until this try has ended
  is_trying_ = true;
  return true;
}

void CircuitBreaker::succeeded() {
  const std::lock_guard lock(mutex_);
  failures_ = 0;
  pause_ = {};
  is_trying_ = false;
}

bool CircuitBreaker::failed() {
  const std::lock_guard lock(mutex_);
  if (pause_.count() == 0) {
    if (++failures_ < options_.max_failures) return false;
    pause_ = std::min(options_.first_pause, options_.max_pause);
  } else {
    if (!is_trying_) return false;  // a call from before it opened
    pause_ = std::min(2 * pause_, options_.max_pause);
  }
  is_trying_ = false;
  try_again_at_ = options_.clock() + pause_;
  ++times_opened_;
  return true;
}

CircuitBreakerStats CircuitBreaker::stats() const {
  const std::lock_guard lock(mutex_);
  return {pause_.count() != 0, pause_, times_opened_, refused_};
}

}  // namespace pagejit::cache
