// Listing the entries of a DiskCache.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

class DiskCacheListTest : public testing::Test {
 protected:
  std::vector<Key> keys(DiskCacheListing* listing = nullptr) {
    std::vector<Key> found;
    const Result<DiskCacheListing> result = cache_->for_each_entry([&](const Entry& entry) {
      found.push_back(entry.key);
      return Status::ok();
    });
    EXPECT_TRUE(result) << result.status().to_string();
    if (result && listing != nullptr) *listing = *result;
    return found;
  }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<DiskCache> cache_ = open_cache(directory_.cache(), file_system_);
};

TEST_F(DiskCacheListTest, ADirectoryThatWasNeverMadeHasNoEntries) { EXPECT_TRUE(keys().empty()); }

TEST_F(DiskCacheListTest, VisitsEachEntryInTheOrderOfNames) {
  std::set<Key> published;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(cache_->publish(example_entry(i)));
    published.insert(example_entry(i).key);
  }
  DiskCacheListing listing;
  EXPECT_EQ(keys(&listing), std::vector<Key>(published.begin(), published.end()));
  EXPECT_EQ(listing.entries, 50u);
  EXPECT_EQ(listing.corrupt, 0u);
}

TEST_F(DiskCacheListTest, CorruptEntriesAreCountedAndOtherFilesPassedOver) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cache_->publish(example_entry(i)));
  const fs::path damaged = entry_path(directory_.cache(), example_entry(1).key);
  write_file(damaged, read_file(damaged) + "x");
  write_file(damaged.parent_path() / "README", "hello");
  write_file(damaged.parent_path() / (std::string(64, 'x') + ".00000000.pjk"), "hello");
  write_file(fs::path(directory_.cache()) / "v1" / "objects" / "stray", "hello");
  DiskCacheListing listing;
  EXPECT_EQ(keys(&listing).size(), 2u);
  EXPECT_EQ(listing.entries, 2u);
  EXPECT_EQ(listing.corrupt, 1u);
}

TEST_F(DiskCacheListTest, TheVisitorsErrorEndsIt) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cache_->publish(example_entry(i)));
  int count = 0;
  const auto result = cache_->for_each_entry([&](const Entry&) {
    return ++count == 2 ? Status(StatusCode::kCancelled, "enough") : Status::ok();
  });
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(count, 2);
}

TEST_F(DiskCacheListTest, AFailingCallIsAnError) {
  ASSERT_TRUE(cache_->publish(example_entry(1)));
  const auto ignore = [](const Entry&) { return Status::ok(); };
  for (Call call : {Call::kOpen, Call::kList, Call::kRead, Call::kStatFd}) {
    file_system_->fail_every(call, EIO);
    EXPECT_EQ(cache_->for_each_entry(ignore).status().code(), StatusCode::kCacheError);
  }
  file_system_->fail_nothing();
  EXPECT_EQ(keys().size(), 1u);
}

TEST_F(DiskCacheListTest, MemoryOnlyHasNothingToList) {
  const auto result = open_cache("")->for_each_entry([](const Entry&) { return Status::ok(); });
  EXPECT_EQ(result.status().code(), StatusCode::kCacheError);
}

}  // namespace
}  // namespace pagejit::cache
