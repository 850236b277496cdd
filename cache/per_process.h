// PerProcess<T>: an object that a forked child makes anew when it first asks. What the child
// inherited may be locked by threads that it does not have, so it is never touched again there, not
// even to be destroyed: those bytes are leaked. Thread-safety: get() may be called from several
// threads at once.
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace pagejit::cache {

template <class T>
class PerProcess {
 public:
  // `make` is called at once, and again in each forked child that asks; it never yields null.
  explicit PerProcess(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {
    slot_ = new Slot{::getpid(), make_()};
  }
  ~PerProcess() {
    if (slot_.load()->process == ::getpid()) delete slot_.load();
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // Valid as long as this object, in this process.
  T& get() {
    const pid_t process = ::getpid();
    Slot* slot = slot_.load(std::memory_order_acquire);
    if (slot->process == process) return *slot->value;
    std::unique_ptr<Slot> fresh(new Slot{process, make_()});
    if (slot_.compare_exchange_strong(slot, fresh.get(), std::memory_order_acq_rel)) {
      slot = fresh.release();
    }
    return *slot->value;
  }

 private:
  struct Slot {
    pid_t process;
    std::unique_ptr<T> value;
  };

  const std::function<std::unique_ptr<T>()> make_;
  std::atomic<Slot*> slot_{nullptr};
};

}  // namespace pagejit::cache
