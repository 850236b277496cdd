// Pending: a kernel that Engine::prepare_async() is preparing. Thread-safety: a Pending may be used
// from any number of threads at once, but not while it is assigned to or destroyed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "pagejit/export.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/status.h"

namespace pagejit {

// The order in which kernels are prepared and compiled; those of one priority first come, first
// served. What has begun is never interrupted for another. prepare() and precompile() are kNormal.
enum class JobPriority : uint8_t { kBackground = 0, kNormal = 1, kUrgent = 2 };

template <class Handle>
struct PrepareOptions {
  // Of several requests for one kernel the greatest counts, also when the kernel waits already.
  JobPriority priority = JobPriority::kNormal;
  // As in Engine::prepare(): while it is being captured only a kernel that is ready is returned.
  Stream stream = nullptr;
  // Called once with the result, after it can be had by wait(), unless cancel() came first. On a
  // thread of the engine; or on the one that destroys the engine (then with kCancelled); or, where
  // no thread can be started, on the caller's before prepare_async() returns. No lock is held. It
  // may use the engine but must not destroy it, wait for another Pending, or throw: an exception is
  // dropped. Other kernels wait meanwhile, so it should be short.
  std::function<void(const Result<Handle>&)> on_done = {};
};

// What prepare_async() will yield. To destroy it is to detach: the kernel is prepared all the same,
// and on_done is called. It may outlive its engine: then what was not done is kCancelled. In a
// forked child a Pending of the parent is kCancelled.
template <class Handle>
class Pending {
 public:
  Pending() = default;  // empty: kInvalidArgument

  // Blocks until there is a result; a copy of it each time. Errors are those of Engine::prepare(),
  // and kCancelled.
  Result<Handle> wait() const;
  // The same for at most `timeout`: whether there is a result now.
  bool wait_for(std::chrono::milliseconds timeout) const;
  bool is_ready() const;  // wait() does not block

  // Gives this request up: wait() yields kCancelled at once, unless there is a result already. The
  // kernel goes on being prepared for others that want it; if there are none, it is not begun, or
  // its compile is stopped at the next chance (NVRTC from 12.8 on; older ones run to their end, and
  // the image is stored).
  void cancel();

  explicit operator bool() const { return state_ != nullptr; }

  struct State;  // internal

 private:
  friend class Engine;
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace pagejit
