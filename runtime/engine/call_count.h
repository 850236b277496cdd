// CallCount: counts the calls that are inside an engine, so that a forked child knows whether a
// thread that does not exist in it has left something half done: a compiler's or driver's own
// locks, a kernel that is being loaded, a flight that others wait for. (One of the
// engine's own mutexes, too: only those of the cache have guards, see cache/fork_guard.h.)
// Thread-safety: all functions may be called from several threads at once; they take no lock.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "pagejit/status.h"
#include "runtime/format.h"

namespace pagejit {

class CallCount {
 public:
  // kCompilerUnavailable in a child that was forked while a call was inside.
  Status enter() {
    const uint64_t process = static_cast<uint32_t>(::getpid());
    uint64_t before = state_.load();
    uint64_t after = 0;
    do {
      if (process_of(before) != process && calls_of(before) != 0) return lost();
      after = process << 32 | (calls_of(before) + 1);
    } while (!state_.compare_exchange_weak(before, after));
    return {};
  }
  void leave() { state_.fetch_sub(1); }

  // Whether enter() fails in this process, for good.
  bool is_lost() const {
    const uint64_t now = state_.load();
    return process_of(now) != static_cast<uint32_t>(::getpid()) && calls_of(now) != 0;
  }

 private:
  static uint64_t process_of(uint64_t state) { return state >> 32; }
  static uint64_t calls_of(uint64_t state) { return state & UINT32_MAX; }

  Status lost() const {
    return Status(StatusCode::kCompilerUnavailable,
                  format("process {} was forked from process {} while another thread was inside a "
                         "call of this engine, which may never come to its end here: create an "
                         "engine in the child, or call exec",
                         ::getpid(), process_of(state_.load())));
  }

  // The process of the calls, then their number: in one word, so that a child takes both over at
  // once.
  std::atomic<uint64_t> state_{static_cast<uint64_t>(static_cast<uint32_t>(::getpid())) << 32};
};

// A call that is inside.
class CallScope {
 public:
  explicit CallScope(CallCount& calls) : calls_(calls), status_(calls.enter()) {}
  ~CallScope() {
    if (status_) calls_.leave();
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  const Status& status() const { return status_; }

 private:
  CallCount& calls_;
  const Status status_;
};

}  // namespace pagejit
