// CompilePool: the threads that compile. They have stacks of 8 MiB, because NVRTC crashes on the 64
// KiB that some programs give their threads, and they are few, because a compile takes a core and
// 100 MB. Jobs start in the order of submit(). Not a general pool: jobs must not wait for other
// jobs of the same pool. Thread-safety: submit() may be called from any number of threads; the
// destructor from one, with no submit() under way.
//
// fork: the threads do not exist in a forked child. A child whose parent was idle at the fork gets
// a fresh pool at its first submit(); where a job was running, the compiler's own locks may be held
// for ever, so that every job of the child ends in kCompilerUnavailable.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "pagejit/status.h"

namespace pagejit::jit {

// What a job will yield. It always gets a result: the job's own, kCancelled where the pool is
// destroyed first, kInternal where the job threw, kCompilerUnavailable where no thread can be had.
template <class T>
class Pending {
 public:
  // Blocks until there is a result, and moves it out: call it once.
  Result<T> wait() {
    std::unique_lock lock(shared_->mutex);
    shared_->done.wait(lock, [this] { return shared_->result.has_value(); });
    return std::move(*shared_->result);
  }

 private:
  friend class CompilePool;
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<T>> result;

    void set(Result<T> value) {
      // Notified under the lock: the waiter may destroy this object right after.
      std::lock_guard lock(mutex);
      result = std::move(value);
      done.notify_all();
    }
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

class CompilePool {
 public:
  // At most `num_threads` threads, started when jobs wait and none is idle. 0 = the number of
  // processors, at most 16.
  explicit CompilePool(int num_threads);
  // Cancels what has not started and waits for what runs.
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  template <class T>
  Pending<T> submit(std::function<Result<T>()> work) {
    Pending<T> pending;
    auto shared = pending.shared_;
    enqueue({[shared, work = std::move(work)](const std::function<void()>& on_finished) {
               Result<T> result = guarded(work);
               on_finished();
               shared->set(std::move(result));
             },
             [shared](const Status& reason) { shared->set(reason); }});
    return pending;
  }

  // Threads started so far in this process.
  int num_threads() const;

 private:
  struct Job {
    // Calls its argument when the work is done, before the waiter learns of it.
    std::function<void(const std::function<void()>&)> run;
    std::function<void(const Status&)> refuse;  // instead of run
  };
  struct State;

  // Exceptions (out of memory) end here: they must not leave the library.
  template <class T>
  static Result<T> guarded(const std::function<Result<T>()>& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      return Status(StatusCode::kInternal, std::string("a compile job threw: ") + error.what());
    } catch (...) {
      return Status(StatusCode::kInternal, "a compile job threw");
    }
  }

  void enqueue(Job job);
  // The state of this process: after a fork a new one, or null where that is not safe.
  State* state_of_this_process();
  static void* thread_main(void* state);

  const int max_threads_;
  std::atomic<State*> state_;
};

}  // namespace pagejit::jit
