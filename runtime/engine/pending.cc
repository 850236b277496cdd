// The public half of a Pending; the other one is async_prepares.h.
#include <unistd.h>

#include "pagejit/async.h"
#include "pagejit/engine.h"
#include "runtime/engine/async_prepares.h"
#include "runtime/engine/families.h"

namespace pagejit {
namespace {

Status empty_pending() {
  return Status(StatusCode::kInvalidArgument,
                "this Pending is empty: Engine::prepare_async() makes them");
}

// The thread that would set the result does not exist in a forked child, and the mutex may be held
// for ever.
Status lost_in_fork() {
  return Status(StatusCode::kCancelled,
                "the kernel was being prepared by the process that this one was forked from");
}

}  // namespace

template <class Handle>
Result<Handle> Pending<Handle>::wait() const {
  if (state_ == nullptr) return empty_pending();
  if (state_->process != ::getpid()) return lost_in_fork();
  std::unique_lock lock(state_->mutex);
  state_->done.wait(lock, [this] { return state_->result.has_value(); });
  return *state_->result;
}

template <class Handle>
bool Pending<Handle>::wait_for(std::chrono::milliseconds timeout) const {
  if (state_ == nullptr || state_->process != ::getpid()) return true;
  std::unique_lock lock(state_->mutex);
  return state_->done.wait_for(lock, timeout, [this] { return state_->result.has_value(); });
}

template <class Handle>
bool Pending<Handle>::is_ready() const {
  return wait_for(std::chrono::milliseconds(0));
}

template <class Handle>
void Pending<Handle>::cancel() {
  if (state_ == nullptr || state_->process != ::getpid()) return;
  std::function<void(const Result<Handle>&)> dropped;  // destroyed with no lock held
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->result) return;
    state_->result = Status(StatusCode::kCancelled, "the request was cancelled");
    dropped = std::move(state_->on_done);
    state_->on_done = nullptr;
    state_->done.notify_all();
  }
  state_->request->leave(state_.get());
}

template class PAGEJIT_EXPORT_INSTANCE Pending<Kernel>;
template class PAGEJIT_EXPORT_INSTANCE Pending<CascadeKernel>;
template class PAGEJIT_EXPORT_INSTANCE Pending<SparseAttentionKernel>;
#define PAGEJIT_FAMILY(Spec) template class PAGEJIT_EXPORT_INSTANCE Pending<Spec::Handle>;
PAGEJIT_EACH_FAMILY(PAGEJIT_FAMILY)
#undef PAGEJIT_FAMILY

}  // namespace pagejit
