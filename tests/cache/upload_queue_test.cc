#include "cache/upload_queue.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"

namespace pagejit::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ElementsAre;

// What was sent; a closed gate holds the sender up. Shared with the queue's thread, which may
// outlive its queue.
struct Sender {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = true;
  bool heeds_cancelled = true;
  int started = 0;
  std::vector<std::string> sent;

  void set_open(bool open) {
    const std::lock_guard lock(mutex);
    is_open = open;
    changed.notify_all();
  }
  void wait_until_started(int number) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kSoon, [&] { return started >= number; }));
  }
  void send(const Upload& upload, const std::atomic<bool>& cancelled) {
    std::unique_lock lock(mutex);
    ++started;
    changed.notify_all();
    while (!is_open && !(heeds_cancelled && cancelled)) changed.wait_for(lock, milliseconds(5));
    if (is_open) sent.push_back(upload.bytes);
  }
};

class UploadQueueTest : public testing::Test {
 protected:
  std::unique_ptr<UploadQueue> make_queue(size_t max_waiting) {
    return std::make_unique<UploadQueue>(
        max_waiting, [sender = sender_](const Upload& upload, const std::atomic<bool>& cancelled) {
          sender->send(upload, cancelled);
        });
  }

  const std::shared_ptr<Sender> sender_ = std::make_shared<Sender>();
};

TEST_F(UploadQueueTest, SendsInOrder) {
  const auto queue = make_queue(64);
  for (const char* bytes : {"a", "b", "c"}) queue->push({{}, bytes});
  EXPECT_TRUE(queue->flush(kSoon));
  EXPECT_THAT(sender_->sent, ElementsAre("a", "b", "c"));
  EXPECT_EQ(queue->stats().waiting, 0);
}

TEST_F(UploadQueueTest, AFullQueueLosesItsOldest) {
  const auto queue = make_queue(2);
  sender_->set_open(false);
  queue->push({{}, "being sent"});
  sender_->wait_until_started(1);
  for (const char* bytes : {"a", "b", "c", "d"}) queue->push({{}, bytes});
  EXPECT_EQ(queue->stats().dropped, 2);
  EXPECT_EQ(queue->stats().waiting, 3);
  EXPECT_FALSE(queue->flush(milliseconds(1)));
  sender_->set_open(true);
  EXPECT_TRUE(queue->flush(kSoon));
  EXPECT_THAT(sender_->sent, ElementsAre("being sent", "c", "d"));
}

#if !defined(__SANITIZE_THREAD__)  // starts a thread of its own with the first of the program
TEST_F(UploadQueueTest, NoThreadIsStartedBeforeTheFirstEntry) {
  const size_t before = list("/proc/self/task").size();
  const auto queue = make_queue(2);
  EXPECT_TRUE(queue->flush(milliseconds(0)));
  EXPECT_EQ(list("/proc/self/task").size(), before);
  queue->push({{}, "a"});
  EXPECT_EQ(list("/proc/self/task").size(), before + 1);
}
#endif

TEST_F(UploadQueueTest, TheThreadTakesNoSignals) {
  sigset_t blocked_there;
  ::sigemptyset(&blocked_there);
  UploadQueue queue(1, [&](const Upload&, const std::atomic<bool>&) {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked_there);
  });
  queue.push({{}, "a"});
  ASSERT_TRUE(queue.flush(kSoon));
  EXPECT_EQ(::sigismember(&blocked_there, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&blocked_there, SIGPIPE), 1);
  sigset_t blocked_here;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked_here);
  EXPECT_EQ(::sigismember(&blocked_here, SIGTERM), 0);
}

TEST_F(UploadQueueTest, TheDestructorSendsWhatIsQuickAndCancelsWhatIsNot) {
  auto queue = make_queue(64);
  for (const char* bytes : {"a", "b"}) queue->push({{}, bytes});
  queue.reset();
  EXPECT_THAT(sender_->sent, ElementsAre("a", "b"));

  sender_->set_open(false);
  queue = make_queue(64);
  for (const char* bytes : {"c", "d"}) queue->push({{}, bytes});
  const auto begin = steady_clock::now();
  queue.reset();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1'900));
  EXPECT_THAT(sender_->sent, ElementsAre("a", "b"));
}

TEST_F(UploadQueueTest, TheDestructorDoesNotWaitForASenderThatIgnoresIt) {
  sender_->set_open(false);
  sender_->heeds_cancelled = false;
  auto queue = make_queue(64);
  queue->push({{}, "a"});
  sender_->wait_until_started(1);
  const auto begin = steady_clock::now();
  queue.reset();
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  sender_->set_open(true);  // the thread ends, though its queue is gone
  EXPECT_TRUE(wait_for([&] {
    const std::lock_guard lock(sender_->mutex);
    return sender_->sent.size() == 1;
  }));
}

TEST_F(UploadQueueTest, ASenderThatRunsOutOfMemoryLosesOneEntry) {
  int calls = 0;
  UploadQueue queue(8, [&](const Upload&, const std::atomic<bool>&) {
    if (++calls == 1) throw std::bad_alloc();
  });
  queue.push({{}, "a"});
  queue.push({{}, "b"});
  EXPECT_TRUE(queue.flush(kSoon));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(queue.stats().dropped, 1);
}

}  // namespace
}  // namespace pagejit::cache
