// DiskCache used by several threads and processes at once, some of which are killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(DiskCacheProcessTest, KillBeforeAnyCallOfThePublishNeverShowsABadEntry) {
  TestDirectory directory;
  const Entry entry = example_entry(1, 20000);
  Entry old = entry;
  old.image = "old";
  for (const bool exists : {false, true}) {
    int num_kills = 0;
    while (true) {
      fs::remove_all(directory.cache());
      if (exists) {
        ASSERT_TRUE(open_cache(directory.cache())->publish(old).is_ok());
      }
      const int result = run_child([&] {
        const auto file_system = std::make_shared<FaultFileSystem>();
        file_system->max_transfer_bytes = 4096;  // so that it also dies between writes
        file_system->before = [&](int index, Call) {
          if (index == num_kills) ::kill(::getpid(), SIGKILL);
          return 0;
        };
        return open_cache(directory.cache(), file_system)->publish(entry).is_ok() ? 0 : 1;
      });
      const auto cache = open_cache(directory.cache());
      const LookupResult after = cache->lookup(entry.key);
      if (result == 0) {  // it got through: no more calls to die before
        ASSERT_EQ(after.outcome, LookupOutcome::kHit);
        break;
      }
      ASSERT_EQ(result, 128 + SIGKILL);
      ASSERT_NE(after.outcome, LookupOutcome::kCorrupt) << num_kills;
      if (after.outcome == LookupOutcome::kHit) {
        EXPECT_TRUE(*after.entry == entry || (exists && *after.entry == old)) << num_kills;
      } else {
        EXPECT_FALSE(exists) << num_kills;
        EXPECT_TRUE(after.status.is_ok());
      }
      ASSERT_TRUE(cache->publish(entry).is_ok()) << num_kills;
      ASSERT_EQ(*cache->lookup(entry.key).entry, entry);
      ++num_kills;
    }
    EXPECT_GT(num_kills, 20);
  }
}

TEST(DiskCacheProcessTest, ProcessesThatPublishAndReadTheSameKeysNeverReadABadEntry) {
  TestDirectory directory;
  constexpr int kNumProcesses = 4;
  std::vector<pid_t> children;
  for (int p = 0; p < kNumProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto cache = open_cache(directory.cache());
      int num_hits = 0;
      for (int i = 0; i < 150; ++i) {
        const Entry entry = example_entry((i * 5 + p) % 8, 5000);
        const LookupResult result = cache->lookup(entry.key);
        if (result.outcome == LookupOutcome::kCorrupt) ::_exit(1);
        if (result.outcome == LookupOutcome::kHit && *result.entry != entry) ::_exit(2);
        if (result.outcome == LookupOutcome::kHit) ++num_hits;
        if (!cache->publish(entry).is_ok()) ::_exit(3);
      }
      ::_exit(num_hits > 100 ? 0 : 4);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_TRUE(list(directory.cache() + "/v1/tmp").empty());
}

TEST(DiskCacheProcessTest, ThreadsThatPublishAndReadTheSameKeyNeverReadABadEntry) {
  TestDirectory directory;
  const auto cache = open_cache(directory.cache());
  const Entry entry = example_entry(1, 5000);
  std::atomic<int> num_bad = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if ((i + t) % 2 == 0 && !cache->publish(entry).is_ok()) ++num_bad;
        const LookupResult result = cache->lookup(entry.key);
        if (result.outcome != LookupOutcome::kHit && i > 1) ++num_bad;
        if (result.entry != nullptr && *result.entry != entry) ++num_bad;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_bad, 0);
  EXPECT_EQ(cache->stats().published, 200u);
  EXPECT_EQ(cache->stats().corrupt_total(), 0u);
}

TEST(DiskCacheProcessTest, RemovingTheDirectoryWhileThreadsUseItOnlyCausesMisses) {
  TestDirectory directory;
  const auto cache = open_cache(directory.cache());
  std::atomic<bool> stop = false;
  std::atomic<int> num_bad = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const Entry entry = example_entry((i + t) % 4, 3000);
        if (const Status status = cache->publish(entry);
            !status.is_ok() && status.code() != StatusCode::kCacheError) {
          ++num_bad;
        }
        const LookupResult result = cache->lookup(entry.key);
        if (result.outcome == LookupOutcome::kCorrupt) ++num_bad;
        if (result.entry != nullptr && *result.entry != entry) ++num_bad;
      }
    });
  }
  const auto until = steady_clock::now() + milliseconds(500);
  while (steady_clock::now() < until) {
    std::error_code ignored;
    fs::remove_all(directory.cache(), ignored);
    std::this_thread::sleep_for(milliseconds(1));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_bad, 0);
  EXPECT_EQ(cache->stats().corrupt_total(), 0u);
  const auto fresh = open_cache(directory.cache());
  ASSERT_TRUE(fresh->publish(example_entry(1)).is_ok());
  EXPECT_EQ(fresh->lookup(example_entry(1).key).outcome, LookupOutcome::kHit);
}

}  // namespace
}  // namespace pagejit::cache
