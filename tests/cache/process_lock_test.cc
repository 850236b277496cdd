// ProcessLock: who excludes whom, and what death and fork do to a lock.
#include "cache/process_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <list>
#include <thread>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

class ProcessLockTest : public testing::Test {
 protected:
  // 0 or an errno.
  int take(ProcessLock* lock, const Key& key) {
    const IoStatus opened = lock->open(&file_system_, directory_fd_.get());
    return opened.is_ok() ? lock->try_take(key) : opened.error();
  }
  int take(ProcessLock* lock) { return take(lock, key_); }
  // Whether nobody holds the key.
  bool is_free() {
    ProcessLock lock;
    return take(&lock) == 0;
  }

  TestDirectory directory_;
  FaultFileSystem file_system_;
  PosixFileSystem real_;
  FileDescriptor directory_fd_{&real_, ::open(directory_.path().c_str(), O_RDONLY | O_CLOEXEC)};
  const Key key_ = example_entry(1).key;
};

TEST_F(ProcessLockTest, OneObjectHoldsAKeyAtATime) {
  ProcessLock first;
  ProcessLock second;
  ASSERT_EQ(take(&first), 0);
  EXPECT_TRUE(first.is_taken());
  EXPECT_EQ(take(&second), EAGAIN);
  EXPECT_FALSE(second.is_taken());
  first.release();
  EXPECT_FALSE(first.is_taken());
  EXPECT_EQ(second.try_take(key_), 0);
}

TEST_F(ProcessLockTest, DifferentKeysDoNotExcludeEachOther) {
  std::list<ProcessLock> locks;
  Key key = key_;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(take(&locks.emplace_back(), example_entry(1000 + i).key), 0) << i;
    key.compiler[0] = static_cast<uint8_t>(i);
    ASSERT_EQ(take(&locks.emplace_back(), key), 0) << "of compiler " << i;
  }
}

TEST_F(ProcessLockTest, ReleasedDestroyedOrReopenedItLeavesNothingBehind) {
  const size_t open_before = num_open_files();
  {
    ProcessLock lock;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(take(&lock), 0);
  }
  EXPECT_EQ(num_open_files(), open_before);
  EXPECT_TRUE(is_free());
}

TEST_F(ProcessLockTest, ALockEndsWithItsHolder) {
  SharedMemory<std::atomic<bool>> taken;
  ChildProcess holder([&] {
    ProcessLock lock;
    *taken = take(&lock) == 0;
    return sleep_for_ever();
  });
  ASSERT_TRUE(wait_for([&] { return taken->load(); }));
  EXPECT_FALSE(is_free());
  holder.kill();
  EXPECT_TRUE(is_free());
}

// A parent that takes the lock and has a child, both of which then sleep.
struct Family {
  std::atomic<pid_t> child{0};
  std::atomic<bool> ready{false};

  ~Family() {
    if (child > 0) ::kill(child, SIGKILL);
  }
  // Returns when the child's handlers have run.
  void fork_child() {
    if (::fork() == 0) {
      child = ::getpid();
      ::alarm(60);
      sleep_for_ever();
    }
    while (child == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(ProcessLockTest, AForkedChildDoesNotKeepTheLockOfAKilledParent) {
  SharedMemory<Family> family;
  ChildProcess parent([&] {
    ProcessLock lock;
    if (take(&lock) != 0) return 1;
    family->fork_child();
    family->ready = true;
    return sleep_for_ever();
  });
  ASSERT_TRUE(wait_for([&] { return family->ready.load(); }));
  EXPECT_FALSE(is_free()) << "the child must not release its parent's lock either";
  parent.kill();
  EXPECT_TRUE(is_free());
  EXPECT_EQ(::kill(family->child, 0), 0) << "the child lives";
  ::kill(family->child, SIGKILL);
}

TEST_F(ProcessLockTest, AChildForkedRightAfterTheOpenDoesNotKeepTheLockEither) {
  SharedMemory<Family> family;
  ChildProcess parent([&] {
    file_system_.after_open = [&](const std::string& path) {
      if (path == "lock" && family->child == 0) family->fork_child();
    };
    ProcessLock lock;
    if (take(&lock) != 0) return 1;
    family->ready = true;
    return sleep_for_ever();
  });
  ASSERT_TRUE(wait_for([&] { return family->ready.load(); }));
  EXPECT_FALSE(is_free());
  parent.kill();
  EXPECT_TRUE(is_free());
  EXPECT_EQ(::kill(family->child, 0), 0) << "the child lives";
  ::kill(family->child, SIGKILL);
}

TEST_F(ProcessLockTest, AForkAtEveryOpenMeansNoLock) {
  file_system_.after_open = [](const std::string&) { EXPECT_EQ(run_child([] { return 0; }), 0); };
  const size_t open_before = num_open_files();
  ProcessLock lock;
  EXPECT_EQ(lock.open(&file_system_, directory_fd_.get()).error(), EBUSY);
  EXPECT_EQ(num_open_files(), open_before);
}

TEST_F(ProcessLockTest, InAForkedChildTheObjectIsEmpty) {
  ProcessLock lock;
  ASSERT_EQ(take(&lock), 0);
  const size_t open_in_parent = num_open_files();
  EXPECT_EQ(run_child([&] {
              if (lock.is_taken()) return 1;
              if (num_open_files() != open_in_parent - 1) return 2;
              const int reused = ::dup(directory_fd_.get());  // takes the closed one's number
              lock.release();
              if (::fcntl(reused, F_GETFD) == -1) return 3;
              if (take(&lock) != EAGAIN) return 4;  // the parent's
              if (take(&lock, example_entry(2).key) != 0) return 5;
              return run_child([&] { return lock.is_taken() ? 6 : 0; });
            }),
            0);
  EXPECT_TRUE(lock.is_taken());
  EXPECT_FALSE(is_free());
}

TEST_F(ProcessLockTest, ReleaseFreesTheKeyThoughAChildSharesTheFile) {
  ProcessLock lock;
  ASSERT_EQ(take(&lock), 0);
  const pid_t child = ::_Fork();  // runs no handlers
  if (child == 0) {
    while (true) ::pause();
  }
  lock.release();
  EXPECT_TRUE(is_free());
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

// ThreadSanitizer does not support threads after a fork of threads, AddressSanitizer no fork while
// others allocate (tests/asan_fork.cc).
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_F(ProcessLockTest, ForksWhileThreadsLockHangNobody) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      PosixFileSystem file_system;
      const Key key = example_entry(10 + t).key;
      while (!stop) {
        ProcessLock lock;
        const IoStatus opened = lock.open(&file_system, directory_fd_.get());
        if (opened.is_ok()) {
          EXPECT_EQ(lock.try_take(key), 0);
        } else {
          EXPECT_EQ(opened.error(), EBUSY);
        }
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(run_child([&] {
                ::alarm(10);
                PosixFileSystem file_system;
                ProcessLock lock;
                if (!lock.open(&file_system, directory_fd_.get()).is_ok()) return 1;
                return lock.try_take(key_);
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}
#endif

TEST_F(ProcessLockTest, WhatIsNoFileIsNotOpened) {
  const fs::path path = directory_.path() / "lock";
  ProcessLock lock;
  fs::create_symlink(directory_.path() / "elsewhere", path);
  EXPECT_EQ(take(&lock), ELOOP);
  EXPECT_FALSE(fs::exists(directory_.path() / "elsewhere"));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(take(&lock), EISDIR);
}

}  // namespace
}  // namespace pagejit::cache
