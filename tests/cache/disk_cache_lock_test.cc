// DiskCache::lock: how each wait ends, and that nothing that fails makes it wait or throw.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class DiskCacheLockTest : public testing::Test {
 protected:
  std::unique_ptr<DiskCache> open(milliseconds lock_timeout = std::chrono::seconds(60)) {
    DiskCacheOptions options;
    options.directory = {directory_.cache(), "", "test"};
    options.file_system = file_system_;
    options.lock_timeout = lock_timeout;
    options.on_lock_failure = [this](const Status& status) { told_.push_back(status.message()); };
    return DiskCache::open(std::move(options));
  }
  // As a caller that looks up again.
  LockOutcome lock(DiskCache& cache, ProcessLock* lock) {
    return cache.lock(
        entry_.key,
        [&] {
          ++num_looks_;
          return cache.lookup(entry_.key).outcome == LookupOutcome::kHit;
        },
        lock);
  }
  LockOutcome lock(DiskCache& cache) {
    ProcessLock released_at_once;
    return lock(cache, &released_at_once);
  }
  // A child that holds the lock and then runs `body`.
  template <class Body>
  std::unique_ptr<ChildProcess> holder(Body&& body) {
    auto child = std::make_unique<ChildProcess>([&] {
      const auto cache = open();
      ProcessLock held;
      if (lock(*cache, &held) != LockOutcome::kTaken) return 1;
      *is_held_ = true;
      return body(*cache);
    });
    EXPECT_TRUE(wait_for([&] { return is_held_->load(); }));
    return child;
  }
  std::unique_ptr<ChildProcess> holder() {
    return holder([](DiskCache&) { return sleep_for_ever(); });
  }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  const Entry entry_ = example_entry(1);
  SharedMemory<std::atomic<bool>> is_held_;
  std::vector<std::string> told_;
  int num_looks_ = 0;
};

TEST_F(DiskCacheLockTest, AFreeLockIsTakenAndTheKeyLookedUpOnce) {
  const auto cache = open();
  ProcessLock held;
  EXPECT_EQ(lock(*cache, &held), LockOutcome::kTaken);
  EXPECT_TRUE(held.is_taken());
  EXPECT_EQ(num_looks_, 1);
  EXPECT_EQ(cache->stats().lock_waits, 0u);
  EXPECT_EQ(fs::status(directory_.cache() + "/v1/lock").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(DiskCacheLockTest, WhatWasPublishedBeforeTheLockWasTakenIsFound) {
  const auto cache = open();
  ASSERT_TRUE(cache->publish(entry_).is_ok());
  ProcessLock held;
  EXPECT_EQ(lock(*cache, &held), LockOutcome::kPublished);
  EXPECT_FALSE(held.is_taken());
  EXPECT_EQ(cache->stats().lock_waits, 0u);
  EXPECT_EQ(cache->stats().lock_wait_hits, 0u);
}

TEST_F(DiskCacheLockTest, AWaiterFindsWhatTheHolderPublishes) {
  SharedMemory<std::atomic<bool>> go;
  const auto child = holder([&](DiskCache& cache) {
    if (!wait_for([&] { return go->load(); })) return 2;
    return cache.publish(entry_).is_ok() ? 0 : 3;
  });
  const auto cache = open();
  std::thread waiter([&] { EXPECT_EQ(lock(*cache), LockOutcome::kPublished); });
  EXPECT_TRUE(wait_for([&] { return cache->stats().lock_waits == 1; }));
  *go = true;
  waiter.join();
  EXPECT_EQ(child->wait(), 0);
  EXPECT_EQ(cache->stats().lock_wait_hits, 1u);
  EXPECT_EQ(cache->stats().lock_timeouts, 0u);
}

TEST_F(DiskCacheLockTest, AWaiterFindsWhatAThirdPublishesWhileTheHolderIsStopped) {
  const auto child = holder();
  child->stop();
  const auto cache = open();
  const auto begin = steady_clock::now();
  std::thread waiter([&] { EXPECT_EQ(lock(*cache), LockOutcome::kPublished); });
  EXPECT_TRUE(wait_for([&] { return cache->stats().lock_waits == 1; }));
  EXPECT_TRUE(open()->publish(entry_).is_ok());
  waiter.join();
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST_F(DiskCacheLockTest, WhenTheHolderIsKilledAWaiterTakesTheLockAtOnce) {
  const auto child = holder();
  const auto cache = open();
  const auto begin = steady_clock::now();
  std::thread waiter([&] {
    ProcessLock held;
    EXPECT_EQ(lock(*cache, &held), LockOutcome::kTaken);
    EXPECT_TRUE(held.is_taken());
  });
  EXPECT_TRUE(wait_for([&] { return cache->stats().lock_waits == 1; }));
  child->kill();
  waiter.join();
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  EXPECT_EQ(cache->stats().lock_wait_hits, 0u);
  EXPECT_EQ(cache->stats().lock_timeouts, 0u);
}

TEST_F(DiskCacheLockTest, WhenTheHolderIsStoppedAWaiterGoesOnAfterTheBound) {
  const auto child = holder();
  child->stop();
  const auto cache = open(milliseconds(150));
  const auto begin = steady_clock::now();
  ProcessLock held;
  EXPECT_EQ(lock(*cache, &held), LockOutcome::kTimedOut);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(150));
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  EXPECT_FALSE(held.is_taken());
  EXPECT_EQ(cache->stats().lock_waits, 1u);
  EXPECT_EQ(cache->stats().lock_timeouts, 1u);
  EXPECT_TRUE(told_.empty());
}

TEST_F(DiskCacheLockTest, OtherKeysAreNotHeldUp) {
  const auto child = holder();
  const auto cache = open();
  ProcessLock held;
  EXPECT_EQ(cache->lock(
                example_entry(2).key, [] { return false; }, &held),
            LockOutcome::kTaken);
  EXPECT_EQ(cache->stats().lock_waits, 0u);
}

TEST_F(DiskCacheLockTest, MemoryOnlyGoesOnWithoutALockAndWithoutAWord) {
  DiskCacheOptions options;
  options.on_lock_failure = [this](const Status& status) { told_.push_back(status.message()); };
  const auto cache = DiskCache::open(std::move(options));
  EXPECT_EQ(lock(*cache), LockOutcome::kUnavailable);
  EXPECT_EQ(num_looks_, 0);
  EXPECT_TRUE(told_.empty());
  EXPECT_TRUE(cache->stats().lock_failures.empty());
}

TEST_F(DiskCacheLockTest, WhereLocksFailTheCallerGoesOnAndIsToldOnce) {
  for (const int error : {ENOLCK, EOPNOTSUPP, EINVAL, ENOSYS, EIO, EMFILE, EBADF, EDEADLK}) {
    file_system_->fail_every(Call::kLock, error);
    const auto cache = open();
    told_.clear();
    const size_t open_before = num_open_files();
    const auto begin = steady_clock::now();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(lock(*cache), LockOutcome::kUnavailable) << error;
    EXPECT_LT(steady_clock::now() - begin, kSoon);
    EXPECT_EQ(num_open_files(), open_before);
    EXPECT_EQ(cache->stats().lock_failures, (std::map<int, uint64_t>{{error, 3}}));
    ASSERT_EQ(told_.size(), 1u);
    EXPECT_NE(told_[0].find("lock v1/lock"), std::string::npos) << told_[0];
  }
}

TEST_F(DiskCacheLockTest, WhereNothingCanBeWrittenTheCallerGoesOn) {
  for (const Call call : {Call::kOpen, Call::kMakeDirectory}) {
    for (const int error : {EROFS, EACCES, ENOSPC, EDQUOT, EMFILE, ENFILE}) {
      file_system_->fail_nothing();
      const auto cache = open();
      file_system_->fail_every(call, error);
      EXPECT_EQ(lock(*cache), LockOutcome::kUnavailable);
      EXPECT_EQ(cache->stats().lock_failures, (std::map<int, uint64_t>{{error, 1}}));
    }
  }
}

TEST_F(DiskCacheLockTest, AfterAnyFailingCallTheCallerHasTheLockOrGoesOnWithout) {
  file_system_->fail_nothing();
  const int before = file_system_->num_calls();
  EXPECT_EQ(lock(*open()), LockOutcome::kTaken);
  const int num_calls = file_system_->num_calls() - before;
  ASSERT_GT(num_calls, 15);
  int num_failures = 0;
  for (const bool exists : {false, true}) {
    for (int index = 0; index < num_calls; ++index) {
      for (const int error : {ENOSPC, EIO, EMFILE, EROFS, ESTALE, EACCES, ENOENT, ENOLCK}) {
        file_system_->fail_nothing();
        if (!exists) fs::remove_all(directory_.cache());
        const auto cache = open();
        const size_t open_before = num_open_files();
        file_system_->fail_at(index, error);
        {
          ProcessLock held;
          const LockOutcome outcome = lock(*cache, &held);
          ASSERT_EQ(held.is_taken(), outcome == LockOutcome::kTaken);
          if (outcome != LockOutcome::kTaken) {
            ASSERT_EQ(outcome, LockOutcome::kUnavailable);
            ++num_failures;
          }
        }
        file_system_->fail_nothing();
        ASSERT_EQ(num_open_files(), open_before);
        ASSERT_EQ(lock(*open()), LockOutcome::kTaken) << "nothing is held any more";
      }
    }
  }
  EXPECT_GT(num_failures, 50);
}

TEST_F(DiskCacheLockTest, InterruptedCallsAreRepeated) {
  file_system_->interrupt_everything = true;
  EXPECT_EQ(lock(*open()), LockOutcome::kTaken);
}

TEST_F(DiskCacheLockTest, WhateverLiesInThePlaceOfTheLockFileNobodyWaits) {
  const fs::path path = directory_.cache() + "/v1/lock";
  ASSERT_EQ(lock(*open()), LockOutcome::kTaken);
  const auto begin = steady_clock::now();
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(lock(*open()), LockOutcome::kUnavailable);
  fs::remove(path);
  fs::create_symlink("nowhere", path);
  EXPECT_EQ(lock(*open()), LockOutcome::kUnavailable);
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(lock(*open()), LockOutcome::kTimedOut);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST_F(DiskCacheLockTest, RemovingTheDirectoryWhileTheLockIsHeldStopsNobody) {
  const auto child = holder();
  const auto cache = open();
  const auto begin = steady_clock::now();
  std::thread waiter([&] { EXPECT_EQ(lock(*cache), LockOutcome::kTaken); });
  EXPECT_TRUE(wait_for([&] { return cache->stats().lock_waits == 1; }));
  fs::remove_all(directory_.cache());
  EXPECT_EQ(lock(*open()), LockOutcome::kTaken) << "a newcomer makes a new file";
  child->kill();
  waiter.join();
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST_F(DiskCacheLockTest, AnExceptionOutOfTheLookLeavesNothingHeld) {
  const auto cache = open();
  {
    ProcessLock held;
    EXPECT_THROW(cache->lock(
                     entry_.key, []() -> bool { throw std::runtime_error("no memory"); }, &held),
                 std::runtime_error);
  }
  EXPECT_EQ(lock(*cache), LockOutcome::kTaken);
}

}  // namespace
}  // namespace pagejit::cache
