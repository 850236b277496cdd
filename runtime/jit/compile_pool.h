// CompilePool: threads for long jobs, such as compiles. They have stacks of 8 MiB, because NVRTC
// crashes on the 64 KiB that some programs give their threads, and they are few, because a compile
// takes a core and 100 MB. Jobs start by priority, those of one priority in the order of submit().
// Jobs must not wait for other jobs of the same pool. Thread-safety: submit() may be called from
// any number of threads; the destructor from one, with no submit() under way.
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
#include <stop_token>
#include <string>
#include <utility>

#include "pagejit/status.h"
#include "runtime/guard.h"
#include "runtime/jit/job_options.h"

namespace pagejit::jit {

// What a job will yield. It always gets a result: the job's own, kCancelled where it was cancelled
// or the pool is destroyed first, kInternal where the job threw, kCompilerUnavailable where no
// thread can be had.
template <class T>
class PendingJob {
 public:
  // Blocks until there is a result, and moves it out: call it once. A job that has not begun when a
  // stop is requested by its options never begins: kCancelled, at once. One that runs is waited
  // for: it may use what its caller holds.
  Result<T> wait() {
    std::unique_lock lock(shared_->mutex);
    const auto is_done = [this] { return shared_->result.has_value(); };
    if (!shared_->done.wait(lock, shared_->options.stop, is_done)) {
      if (shared_->phase.withdraw()) return cancelled_before_begin();
      shared_->done.wait(lock, is_done);
    }
    return std::move(*shared_->result);
  }

 private:
  friend class CompilePool;
  struct Shared {
    std::mutex mutex;
    std::condition_variable_any done;
    std::optional<Result<T>> result;
    JobOptions options;
    JobPhase phase;

    void set(Result<T> value) {
      // Notified under the lock: the waiter may destroy this object right after.
      std::lock_guard lock(mutex);
      result = std::move(value);
      done.notify_all();
    }
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

struct CompilePoolOptions {
  int threads = 0;  // at most so many; 0 = the number of processors, at most 16
  // Of them, threads that take no background jobs, so that others need not wait for one to end.
  int reserved = 0;
  const char* thread_name = "pagejit-compile";  // at most 15 characters (Linux)
};

class CompilePool {
 public:
  // Threads are started when jobs wait and none is idle.
  explicit CompilePool(const CompilePoolOptions& options);
  explicit CompilePool(int num_threads) : CompilePool(CompilePoolOptions{.threads = num_threads}) {}
  // Cancels what has not started, and what running jobs still submit, and waits for what runs. Not
  // on a thread of its own.
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  template <class T>
  PendingJob<T> submit(std::function<Result<T>()> work, const JobOptions& options = {}) {
    PendingJob<T> pending;
    auto shared = pending.shared_;
    shared->options = options;
    enqueue({[shared, work = std::move(work)](const std::function<void()>& on_finished) {
               Result<T> result = guarded(work);
               on_finished();
               shared->set(std::move(result));
             },
             [shared](const Status& reason) { shared->set(reason); },
             {shared, &shared->options},
             {shared, &shared->phase}});
    return pending;
  }

  // The same for work that gives its result to somebody itself, by what it returns: that is called
  // when the work counts as done. `refuse` is called instead of the work, or after it threw, with
  // what a PendingJob would get.
  void post(std::function<std::function<void()>()> work, std::function<void(const Status&)> refuse,
            JobOptions options = {}) {
    enqueue({[work = std::move(work), refuse](const std::function<void()>& on_finished) {
               std::function<void()> tell;
               const Status done = guarded([&] {
                 tell = work();
                 return Status();
               });
               on_finished();
               if (done) {
                 tell();
               } else {
                 refuse(done);
               }
             },
             std::move(refuse), std::make_shared<JobOptions>(std::move(options)),
             std::make_shared<JobPhase>()});
  }

  // To be called when the priority of a job that may be waiting was raised: threads that are kept
  // for more urgent ones look again.
  void reconsider();

  // Threads started so far in this process.
  int num_threads() const;

  // Whether the caller runs on one of them, where this must not be destroyed.
  bool is_own_thread() const;

 private:
  struct Job {
    // Calls its argument when the work is done, before the waiter learns of it.
    std::function<void(const std::function<void()>&)> run;
    std::function<void(const Status&)> refuse;  // instead of run
    std::shared_ptr<const JobOptions> options;
    std::shared_ptr<JobPhase> phase;
  };
  struct State;

  void enqueue(Job job);
  State* new_state() const;
  // The state of this process: after a fork a new one, or null where that is not safe.
  State* state_of_this_process();
  static void* thread_main(void* state);

  const CompilePoolOptions options_;
  std::atomic<State*> state_;
};

}  // namespace pagejit::jit
