// Every system call of DiskCache made to fail, one at a time.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

constexpr int kErrors[] = {ENOSPC, EDQUOT, EIO, EMFILE, EROFS, ESTALE, EACCES, ENOENT, EBUSY};

class DiskCacheFaultTest : public testing::Test {
 protected:
  // A cache of its own each time, so that no pause after an earlier failure hides a call.
  std::unique_ptr<DiskCache> open() { return open_cache(directory_.cache(), file_system_); }
  std::string tmp() const { return directory_.cache() + "/v1/tmp"; }

  // The number of calls that `body` makes when nothing fails.
  template <class Body>
  int count_calls(Body&& body) {
    file_system_->fail_nothing();
    const int before = file_system_->num_calls();
    body();
    return file_system_->num_calls() - before;
  }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  const Entry entry_ = example_entry(1);
};

TEST_F(DiskCacheFaultTest, AnyFailingCallOfThePublishLeavesTheOldStateOrTheNew) {
  for (const bool exists : {false, true}) {
    Entry old = entry_;
    old.image = "old";
    const auto prepare = [&] {
      file_system_->fail_nothing();
      fs::remove_all(directory_.cache());
      if (exists) {
        EXPECT_TRUE(open()->publish(old).is_ok());
      }
      return open();
    };
    auto cache = prepare();
    const int num_calls = count_calls([&] { EXPECT_TRUE(cache->publish(entry_).is_ok()); });
    ASSERT_GT(num_calls, exists ? 20 : 30);
    int num_failures = 0;
    for (int index = 0; index < num_calls; ++index) {
      for (const int error : kErrors) {
        SCOPED_TRACE("call " + std::to_string(index) + " errno " + std::to_string(error));
        cache = prepare();
        const size_t open_before = num_open_files();
        file_system_->fail_at(index, error);
        const Status status = cache->publish(entry_);
        file_system_->fail_nothing();
        EXPECT_EQ(num_open_files(), open_before);
        if (fs::exists(tmp())) {
          EXPECT_TRUE(list(tmp()).empty());
        }
        const LookupResult after = open()->lookup(entry_.key);
        if (status.is_ok()) {
          ASSERT_EQ(after.outcome, LookupOutcome::kHit);
          EXPECT_EQ(*after.entry, entry_);
        } else {
          ++num_failures;
          EXPECT_EQ(status.code(), StatusCode::kCacheError);
          EXPECT_FALSE(status.message().empty());
          EXPECT_EQ(cache->stats().publish_failures, (std::map<int, uint64_t>{{error, 1}}));
          ASSERT_EQ(after.outcome, exists ? LookupOutcome::kHit : LookupOutcome::kMiss);
          if (exists) {
            EXPECT_EQ(*after.entry, old);
          }
        }
        cache = open();
        ASSERT_TRUE(cache->publish(entry_).is_ok());
        ASSERT_EQ(*cache->lookup(entry_.key).entry, entry_);
      }
    }
    EXPECT_GT(num_failures, 50);  // most calls matter; closes of folders and the tag do not
  }
}

TEST_F(DiskCacheFaultTest, ARenameThatFailedButHappenedLeavesAValidEntry) {
  file_system_->failed_rename_moves = true;
  file_system_->fail_every(Call::kRename, EIO);
  EXPECT_FALSE(open()->publish(entry_).is_ok());
  file_system_->fail_nothing();
  EXPECT_TRUE(list(tmp()).empty());
  EXPECT_EQ(open()->lookup(entry_.key).outcome, LookupOutcome::kHit);
}

TEST_F(DiskCacheFaultTest, AnyFailingCallOfALookupIsAMissAndHarmsNothing) {
  ASSERT_TRUE(open()->publish(entry_).is_ok());
  const std::function<LookupResult(DiskCache&)> lookups[] = {
      [&](DiskCache& cache) { return cache.lookup(entry_.key); },
      [&](DiskCache& cache) { return cache.lookup_any_compiler(entry_.key.source, nullptr); },
  };
  for (const auto& lookup : lookups) {
    auto cache = open();
    const int num_calls =
        count_calls([&] { EXPECT_EQ(lookup(*cache).outcome, LookupOutcome::kHit); });
    ASSERT_GT(num_calls, 10);
    int num_misses = 0;
    for (int index = 0; index < num_calls; ++index) {
      for (const int error : kErrors) {
        SCOPED_TRACE("call " + std::to_string(index) + " errno " + std::to_string(error));
        cache = open();
        const size_t open_before = num_open_files();
        file_system_->fail_at(index, error);
        const LookupResult result = lookup(*cache);
        file_system_->fail_nothing();
        EXPECT_EQ(num_open_files(), open_before);
        if (result.outcome == LookupOutcome::kHit) {
          EXPECT_EQ(*result.entry, entry_);
        } else {
          ++num_misses;
          ASSERT_EQ(result.outcome, LookupOutcome::kMiss);
          EXPECT_EQ(result.entry, nullptr);
          EXPECT_EQ(cache->stats().misses, 1u);
          if (!result.status.is_ok()) {
            EXPECT_EQ(result.status.code(), StatusCode::kCacheError);
            EXPECT_EQ(cache->stats().lookup_failures.at(error), 1u);
          }
        }
        ASSERT_EQ(lookup(*cache).outcome, LookupOutcome::kHit);
      }
    }
    EXPECT_GT(num_misses, 30);
  }
}

TEST_F(DiskCacheFaultTest, AnyFailingCallWhileACorruptEntryIsMovedIsNoHit) {
  auto cache = open();
  const auto damage = [&] {
    file_system_->fail_nothing();
    ASSERT_TRUE(open()->publish(entry_).is_ok());
    write_file(entry_path(directory_.cache(), entry_.key), "bad");
  };
  damage();
  const int num_calls = count_calls([&] { cache->lookup(entry_.key); });
  ASSERT_GT(num_calls, 15);
  for (int index = 0; index < num_calls; ++index) {
    for (const int error : kErrors) {
      SCOPED_TRACE("call " + std::to_string(index) + " errno " + std::to_string(error));
      damage();
      cache = open();
      const size_t open_before = num_open_files();
      file_system_->fail_at(index, error);
      EXPECT_NE(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
      file_system_->fail_nothing();
      EXPECT_EQ(num_open_files(), open_before);
      EXPECT_NE(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
      ASSERT_TRUE(cache->publish(entry_).is_ok());
      ASSERT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
    }
  }
}

TEST_F(DiskCacheFaultTest, AnyFailingCallOfOpenLeavesAUsableOrAMemoryOnlyCache) {
  ASSERT_TRUE(open()->publish(entry_).is_ok());
  const int num_calls = count_calls([&] { open(); });
  for (int index = 0; index < num_calls; ++index) {
    for (const int error : kErrors) {
      file_system_->fail_at(index, error);
      const size_t open_before = num_open_files();
      const auto cache = open();
      file_system_->fail_nothing();
      EXPECT_EQ(num_open_files(), open_before);
      EXPECT_EQ(cache->lookup(entry_.key).outcome,
                cache->is_memory_only() ? LookupOutcome::kMiss : LookupOutcome::kHit);
      if (error == EMFILE || error == EIO || error == ESTALE) {
        EXPECT_FALSE(cache->is_memory_only()) << "these may pass";
      }
    }
  }
}

TEST_F(DiskCacheFaultTest, ShortAndInterruptedCallsSucceed) {
  file_system_->max_transfer_bytes = 13;
  file_system_->interrupt_everything = true;
  const auto cache = open();
  ASSERT_TRUE(cache->publish(entry_).is_ok());
  EXPECT_EQ(*cache->lookup(entry_.key).entry, entry_);
}

TEST_F(DiskCacheFaultTest, AnEntryPublishedWhileItsCorruptForerunnerIsMovedIsNotLost) {
  ASSERT_TRUE(open()->publish(entry_).is_ok());
  write_file(entry_path(directory_.cache(), entry_.key), "bad");
  const auto other = open_cache(directory_.cache());
  file_system_->before = [&](int, Call call) {
    // The corrupt bytes have been read; now somebody else heals the entry.
    if (call == Call::kStatAt) {
      EXPECT_TRUE(other->publish(entry_).is_ok());
    }
    return 0;
  };
  const auto cache = open();
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kCorrupt);
  file_system_->fail_nothing();
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
}

TEST_F(DiskCacheFaultTest, ADirectoryRemovedDuringAnyCallOfThePublishIsMadeAgain) {
  auto cache = open();
  const int num_calls = count_calls([&] { EXPECT_TRUE(cache->publish(entry_).is_ok()); });
  for (int index = 0; index < num_calls; ++index) {
    fs::remove_all(directory_.cache());
    const int base = file_system_->num_calls();
    file_system_->before = [&](int i, Call) {
      if (i - base == index) fs::remove_all(directory_.cache());
      return 0;
    };
    const Status status = cache->publish(entry_);
    file_system_->fail_nothing();
    EXPECT_TRUE(status.is_ok()) << index << ": " << status.to_string();
    EXPECT_NE(cache->lookup(entry_.key).outcome, LookupOutcome::kCorrupt);
  }
}

}  // namespace
}  // namespace pagejit::cache
