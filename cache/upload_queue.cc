#include "cache/upload_queue.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace pagejit::cache {
namespace {

// The program's signals are for its own threads, which may expect to handle them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

struct UploadQueue::Shared {
  Shared(size_t max, Send function) : max_waiting(max), send(std::move(function)) {}

  const size_t max_waiting;
  const Send send;
  std::atomic<bool> cancelled{false};

  std::mutex mutex;  // guards what follows; never held during send
  std::condition_variable changed;
  std::deque<Upload> waiting;
  bool is_sending = false;
  bool is_stopping = false;
  bool has_stopped = true;  // no thread, or one that is about to return
  uint64_t dropped = 0;

  bool is_idle() const { return waiting.empty() && !is_sending; }
};

UploadQueue::UploadQueue(size_t max_waiting, Send send)
    : shared_(std::make_shared<Shared>(max_waiting, std::move(send))) {}

UploadQueue::~UploadQueue() {
  flush(kDrainTime);
  std::unique_lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->dropped += shared_->waiting.size();
  shared_->waiting.clear();
  shared_->cancelled = true;
  shared_->changed.notify_all();
  if (!thread_.joinable()) return;
  const bool stopped =
      shared_->changed.wait_for(lock, kStopTime, [&] { return shared_->has_stopped; });
  lock.unlock();
  if (stopped) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void UploadQueue::push(Upload upload) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->is_stopping || shared_->max_waiting == 0) {
    ++shared_->dropped;
    return;
  }
  if (!thread_.joinable()) {
    try {
      const SignalsBlocked inherited_by_the_thread;
      thread_ = std::thread(run, shared_);
      shared_->has_stopped = false;
    } catch (const std::exception&) {  // no memory, no thread
      ++shared_->dropped;
      return;
    }
  }
  if (shared_->waiting.size() >= shared_->max_waiting) {
    shared_->waiting.pop_front();
    ++shared_->dropped;
  }
  shared_->waiting.push_back(std::move(upload));
  shared_->changed.notify_all();
}

bool UploadQueue::flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, timeout, [&] { return shared_->is_idle(); });
}

UploadQueueStats UploadQueue::stats() const {
  const std::lock_guard lock(shared_->mutex);
  return {shared_->dropped, shared_->waiting.size() + (shared_->is_sending ? 1 : 0)};
}

void UploadQueue::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->is_stopping || !shared->waiting.empty(); });
    if (shared->waiting.empty()) break;
    const Upload upload = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    shared->is_sending = true;
    lock.unlock();
    bool sent = true;
    try {
      shared->send(upload, shared->cancelled);
    } catch (const std::exception&) {  // no memory
      sent = false;
    }
    lock.lock();
    shared->is_sending = false;
    if (!sent) ++shared->dropped;
    shared->changed.notify_all();
  }
  shared->has_stopped = true;
  shared->changed.notify_all();
}

}  // namespace pagejit::cache
