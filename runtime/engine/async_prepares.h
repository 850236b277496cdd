// AsyncPrepares: what prepare_async() has been asked for and is not done: one request for each key,
// however many Pendings wait for it, and the threads that work them off. It knows no kernels: what
// is to be done is a function. Thread-safety: start() may be called from several threads at once;
// the destructor from one, with no start() under way.
//
// Threads: as many as compile, since each of them waits for a compile most of the time, and some
// more that take no background requests, so that a kernel that is stored need not wait for
// compiles.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pagejit/async.h"
#include "runtime/engine/call_count.h"
#include "runtime/jit/compile_pool.h"

namespace pagejit {

class AsyncRequest;

// The requests that are not done; outlives the engine as long as a Pending does.
struct AsyncTable {
  explicit AsyncTable(std::shared_ptr<CallCount> engine_guard) : guard(std::move(engine_guard)) {}

  const std::shared_ptr<CallCount> guard;
  // Guards the table and what AsyncRequest says. No other lock is taken and nothing of the caller's
  // is called under it.
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<AsyncRequest>> requests;
};

// One Pending, whatever its handle.
class AsyncWaiter {
 public:
  virtual ~AsyncWaiter() = default;
  // Where there is no result yet.
  virtual void fail(const Status& status) = 0;
};

// A kernel that is being prepared.
class AsyncRequest {
 public:
  AsyncRequest(std::shared_ptr<AsyncTable> table, std::string key)
      : table_(std::move(table)), key_(std::move(key)) {}

  // False where it is done or given up, or the parent's of a forked child, whose threads are not
  // here: then a new one has to be made. Under the table's mutex.
  bool join(const std::shared_ptr<AsyncWaiter>& waiter, JobPriority priority);
  // A waiter that wants no result any more. The last one stops the request.
  void leave(const AsyncWaiter* waiter);
  // Those who still wait; from then on nobody joins.
  std::vector<std::shared_ptr<AsyncWaiter>> finish();
  bool is_of_this_process() const { return process_ == ::getpid(); }

  // Of the work.
  jit::JobOptions job() const {
    return {.priority = JobPriority::kBackground, .stop = stop_.get_token(), .raised = priority_};
  }
  void request_stop() { stop_.request_stop(); }

 private:
  const std::shared_ptr<AsyncTable> table_;
  const std::string key_;
  const pid_t process_ = ::getpid();
  std::vector<std::shared_ptr<AsyncWaiter>> waiters_;  // guarded by the table's mutex, as is:
  bool is_over_ = false;
  std::stop_source stop_;
  const std::shared_ptr<std::atomic<int>> priority_ = std::make_shared<std::atomic<int>>(0);
};

template <class Handle>
struct Pending<Handle>::State final : public AsyncWaiter {
  explicit State(std::function<void(const Result<Handle>&)> callback)
      : on_done(std::move(callback)) {}

  void fail(const Status& status) override { set(status); }

  void set(Result<Handle> value) {
    std::function<void(const Result<Handle>&)> callback;
    {
      const std::lock_guard lock(mutex);
      if (result) return;
      result = std::move(value);
      callback = std::move(on_done);
      on_done = nullptr;
      done.notify_all();
    }
    if (!callback) return;
    try {
      callback(*result);  // never written again
    } catch (...) {       // it must not, and nobody could be told
    }
  }

  const pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<Handle>> result;  // set once
  std::function<void(const Result<Handle>&)> on_done;
  std::shared_ptr<AsyncRequest> request;
};

class AsyncPrepares {
 public:
  // compile_threads: as in EngineOptions. The guard is entered by what happens on other threads.
  AsyncPrepares(int compile_threads, std::shared_ptr<CallCount> guard);
  // What is not done is kCancelled; waits for what runs, which is asked to stop.
  ~AsyncPrepares();
  AsyncPrepares(const AsyncPrepares&) = delete;
  AsyncPrepares& operator=(const AsyncPrepares&) = delete;

  // Has `work` done on a thread of this object's and given to `state`; joins a request of the same
  // key, which must be of the same handle.
  template <class Handle>
  void start(const std::string& key, JobPriority priority,
             const std::shared_ptr<typename Pending<Handle>::State>& state,
             std::function<Result<Handle>(const jit::JobOptions&)> work) {
    std::shared_ptr<AsyncRequest> request;
    bool has_joined = false;
    {
      const std::lock_guard lock(table_->mutex);
      const auto found = table_->requests.find(key);
      has_joined = found != table_->requests.end() && found->second->join(state, priority);
      if (has_joined) {
        request = found->second;
      } else {
        // In the table at last: what is there, somebody will finish.
        request = std::make_shared<AsyncRequest>(table_, key);
        request->join(state, priority);
        table_->requests.insert_or_assign(key, request);
      }
      state->request = request;
    }
    if (has_joined) return pool_.reconsider();  // its priority may be greater now
    const auto finish = [request](const Status& status) {
      for (const std::shared_ptr<AsyncWaiter>& waiter : request->finish()) waiter->fail(status);
    };
    try {
      post(request, finish, std::move(work));
    } catch (...) {  // out of memory: nobody would ever finish it
      finish(Status::out_of_memory());
    }
  }

  // Whether the caller is a callback on a thread of this object's, which must not destroy it.
  bool is_own_thread() const { return pool_.is_own_thread(); }

 private:
  // A result on its way to those who wait for it.
  template <class Handle>
  struct Told {
    void tell() const {
      for (const std::shared_ptr<AsyncWaiter>& waiter : waiters) {
        try {
          static_cast<typename Pending<Handle>::State&>(*waiter).set(*result);
        } catch (...) {  // out of memory
          waiter->fail(Status::out_of_memory());
        }
      }
    }
    std::optional<Result<Handle>> result;
    std::vector<std::shared_ptr<AsyncWaiter>> waiters;
  };

  template <class Handle, class Finish>
  void post(const std::shared_ptr<AsyncRequest>& request, const Finish& finish,
            std::function<Result<Handle>(const jit::JobOptions&)> work) {
    pool_.post(
        [table = table_, request, work = std::move(work)] {
          auto told = std::make_shared<Told<Handle>>();
          std::function<void()> tell = [told] { told->tell(); };
          const CallScope scope(*table->guard);
          const jit::JobOptions job = request->job();
          told->result.emplace(job.stop.stop_requested()
                                   ? Result<Handle>(jit::cancelled_before_begin())
                                   : work(job));
          told->waiters = request->finish();  // throws nothing: they are not lost
          return tell;
        },
        finish, request->job());
  }

  const std::shared_ptr<AsyncTable> table_;
  jit::CompilePool pool_;
};

}  // namespace pagejit
