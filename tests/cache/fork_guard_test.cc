#include "cache/fork_guard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace pagejit::cache {
namespace {

// 0 where a child forked now gets the mutex; else the signal that ended it.
int take_in_child(std::mutex& mutex) {
  static constexpr unsigned kHangSeconds = 10;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kHangSeconds);
    mutex.lock();
    mutex.unlock();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(ForkGuardTest, AChildFindsTheMutexFreeWhateverOtherThreadsDo) {
  std::mutex mutex;
  const ForkGuard guard(mutex);
  std::atomic<bool> stop = false;
  std::thread thread([&] {
    while (!stop) {
      {
        const std::lock_guard lock(mutex);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      // Held most of the time, but not without a break, as by those who hold one for short.
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  for (int i = 0; i < 20; ++i) ASSERT_EQ(take_in_child(mutex), 0) << i;
  stop = true;
  thread.join();
}

TEST(ForkGuardTest, AForkWaitsForAMutexForASecondAtMost) {
  std::mutex mutex;
  const ForkGuard guard(mutex);
  std::atomic<bool> stop = false;
  std::atomic<bool> is_held = false;
  std::thread thread([&] {
    const std::lock_guard lock(mutex);
    is_held = true;
    while (!stop) std::this_thread::yield();
  });
  while (!is_held) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mutex.try_lock() ? 1 : 0);  // held by a thread that is not there
  stop = true;
  thread.join();
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(mutex.try_lock()) << "the parent's is as it was";
  mutex.unlock();
}

TEST(ForkGuardTest, AGuardThatIsGoneIsNotTaken) {
  std::mutex mutex;
  { const ForkGuard guard(mutex); }
  EXPECT_EQ(take_in_child(mutex), 0);
}

}  // namespace
}  // namespace pagejit::cache
