// ForkGuard: counts the calls that are inside an engine, so that a forked child knows whether a
// mutex of the engine may have been held by a thread that does not exist in it. Thread-safety: all
// functions may be called from several threads at once; they take no lock.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "pagejit/status.h"
#include "runtime/format.h"

namespace pagejit {

class ForkGuard {
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
                         "call of this engine, whose locks may stay held for ever: create an "
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
  explicit CallScope(ForkGuard& guard) : guard_(guard), status_(guard.enter()) {}
  ~CallScope() {
    if (status_) guard_.leave();
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  const Status& status() const { return status_; }

 private:
  ForkGuard& guard_;
  const Status status_;
};

}  // namespace pagejit
