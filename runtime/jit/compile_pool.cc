#include "runtime/jit/compile_pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/jit/file_io.h"

namespace pagejit::jit {
namespace {

// NVRTC crashes with 64 KiB and works with 128 KiB (13.0); 8 MiB is what the main thread has, where
// it is tested most. It is address space, not memory.
constexpr size_t kStackBytes = 8 << 20;
// A compile holds about 100 MB, and the hosts with many more processors than this have other work
// for them.
constexpr int kMostThreadsByDefault = 16;

int default_threads() {
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(processors, 1, kMostThreadsByDefault);
}

// The pool whose thread this is.
thread_local const void* own_state = nullptr;

}  // namespace

struct CompilePool::State {
  const pid_t pid = getpid();
  std::mutex mutex;
  std::condition_variable wake;
  std::list<Job> queue;  // an empty one is made without memory
  std::vector<pthread_t> threads;
  int idle = 0;
  bool stopping = false;
  // Read by a forked child, in which the mutex may be locked for ever.
  std::atomic<int> running{0};
  int running_background = 0;
  int max_background = 0;
  const char* thread_name = "";

  // Takes the job that is to run next out of the queue: of the greatest priority, which may have
  // been raised since it was submitted, the oldest. None where only background jobs wait and no
  // more of them may run. Drops jobs that were withdrawn.
  std::optional<Job> next() {
    std::erase_if(queue, [](const Job& job) { return job.phase->is_withdrawn(); });
    auto best = queue.end();
    for (auto job = queue.begin(); job != queue.end(); ++job) {
      if (best == queue.end() || job->options->now() > best->options->now()) best = job;
    }
    if (best == queue.end()) return std::nullopt;
    if (best->options->now() == JobPriority::kBackground && running_background >= max_background) {
      return std::nullopt;
    }
    Job job = std::move(*best);
    queue.erase(best);
    return job;
  }
};

CompilePool::CompilePool(const CompilePoolOptions& options)
    : options_([&] {
        CompilePoolOptions chosen = options;
        if (chosen.threads <= 0) chosen.threads = default_threads();
        return chosen;
      }()),
      state_(new_state()) {}

CompilePool::State* CompilePool::new_state() const {
  auto* state = new State;
  state->max_background = std::max(1, options_.threads - options_.reserved);
  state->thread_name = options_.thread_name;
  return state;
}

CompilePool::~CompilePool() {
  State* state = state_.load();
  // In a forked child the threads are gone: there is nothing to join, and destroying a condition
  // variable with waiters would block. The few bytes stay.
  if (state->pid != getpid()) return;
  std::list<Job> cancelled;
  {
    std::lock_guard lock(state->mutex);
    state->stopping = true;
    cancelled.swap(state->queue);
    state->wake.notify_all();
  }
  for (Job& job : cancelled) {
    (void)guarded([&job] {
      job.refuse(guarded(cancelled_before_begin));
      return Status();
    });
  }
  for (pthread_t thread : state->threads) pthread_join(thread, nullptr);
  delete state;
}

int CompilePool::num_threads() const {
  State* state = state_.load();
  if (state->pid != getpid()) return 0;
  std::lock_guard lock(state->mutex);
  return static_cast<int>(state->threads.size());
}

bool CompilePool::is_own_thread() const {
  const State* state = state_.load();
  return own_state == state && state->pid == getpid();
}

CompilePool::State* CompilePool::state_of_this_process() {
  State* state = state_.load();
  if (state->pid == getpid()) return state;
  if (state->running.load() > 0) return nullptr;
  // The parent's state stays where it is: its mutex may be locked by a thread that does not exist
  // here.
  auto* fresh = new_state();
  if (state_.compare_exchange_strong(state, fresh)) return fresh;
  delete fresh;  // another thread of the child was faster
  return state;
}

void CompilePool::reconsider() {
  State* state = state_.load();
  if (state->pid != getpid()) return;
  const std::lock_guard lock(state->mutex);
  state->wake.notify_all();
}

void CompilePool::enqueue(Job job) {
  State* state = state_of_this_process();
  if (state == nullptr) {
    job.refuse(Status(StatusCode::kCompilerUnavailable,
                      "this process was forked while its parent compiled a kernel: the compiler "
                      "cannot be used in it; prepare kernels before the fork, or call exec"));
    return;
  }
  int error = 0;
  std::optional<Job> refused;
  {
    std::unique_lock lock(state->mutex);
    if (state->stopping) {  // on a thread that the destructor waits for
      lock.unlock();
      return job.refuse(guarded(cancelled_before_begin));
    }
    state->threads.reserve(state->threads.size() + 1);  // no thread is started and not kept
    state->queue.push_back(std::move(job));
    const bool needs_thread = state->queue.size() > static_cast<size_t>(state->idle);
    if (needs_thread && static_cast<int>(state->threads.size()) < options_.threads) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setstacksize(&attributes, kStackBytes);
      // The program's signals are for the program's threads.
      sigset_t all;
      sigset_t before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      pthread_t thread;
      error = pthread_create(&thread, &attributes, &CompilePool::thread_main, state);
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      pthread_attr_destroy(&attributes);
      if (error == 0) {
        pthread_setname_np(thread, options_.thread_name);
        state->threads.push_back(thread);
      }
    }
    if (!state->threads.empty()) {
      state->wake.notify_one();  // one thread is enough to go on
    } else {
      refused = std::move(state->queue.back());
      state->queue.pop_back();
    }
  }
  if (refused) {
    refused->refuse(Status(StatusCode::kCompilerUnavailable,
                           "cannot start a thread to compile with: " + errno_text(error)));
  }
}

void* CompilePool::thread_main(void* opaque) {
  State* state = static_cast<State*>(opaque);
  own_state = state;
  std::unique_lock lock(state->mutex);
  for (;;) {
    std::optional<Job> job;
    ++state->idle;
    state->wake.wait(lock, [&] { return (job = state->next()) || state->stopping; });
    --state->idle;
    if (!job) return nullptr;
    if (!job->phase->begin()) continue;  // withdrawn a moment ago
    const bool is_background = job->options->now() == JobPriority::kBackground;
    if (is_background) ++state->running_background;
    // Counted before the lock is released, so that a fork never sees a running job uncounted.
    state->running.fetch_add(1);
    lock.unlock();
    // Counted down before the result is published: who waited for it may fork at once.
    job->run([state] { state->running.fetch_sub(1); });
    job.reset();  // what the job holds is released before the next wait
    lock.lock();
    if (is_background) --state->running_background;
  }
}

}  // namespace pagejit::jit
