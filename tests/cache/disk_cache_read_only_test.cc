// DiskCache that only reads.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

class DiskCacheReadOnlyTest : public testing::Test {
 protected:
  DiskCacheReadOnlyTest() { EXPECT_TRUE(open_cache(directory_.cache())->publish(entry_).is_ok()); }

  std::unique_ptr<DiskCache> open(const std::string& path) {
    DiskCacheOptions options;
    options.directory = {path, "", "test"};
    options.read_only = true;
    options.file_system = file_system_;
    options.on_warning = [this](const Status& status) { warnings_.push_back(status.message()); };
    options.on_lock_failure = [](const Status&) { ADD_FAILURE() << "nothing was to be locked"; };
    return DiskCache::open(std::move(options));
  }
  std::unique_ptr<DiskCache> open() { return open(directory_.cache()); }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  std::vector<std::string> warnings_;
  const Entry entry_ = example_entry(1);
};

TEST_F(DiskCacheReadOnlyTest, NothingIsMadeMovedTouchedLockedOrDeletedWhateverIsMet) {
  const Entry corrupt = example_entry(2);
  ASSERT_TRUE(open_cache(directory_.cache())->publish(corrupt).is_ok());
  write_file(entry_path(directory_.cache(), corrupt.key), "bad");
  for (const Entry& entry : {entry_, corrupt}) {
    const struct timespec times[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, entry_path(directory_.cache(), entry.key).c_str(), times, 0),
              0);
  }
  file_system_->before = [](int, Call call) {
    const bool writes = call == Call::kWrite || call == Call::kFsync || call == Call::kTouch ||
                        call == Call::kMakeDirectory || call == Call::kRename ||
                        call == Call::kUnlink || call == Call::kLock;
    EXPECT_FALSE(writes) << static_cast<int>(call);
    return 0;
  };
  const auto cache = open();
  EXPECT_EQ(*cache->lookup(entry_.key).entry, entry_);
  EXPECT_EQ(*cache->lookup_any_compiler(entry_.key.source, nullptr).entry, entry_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cache->lookup(corrupt.key).corruption, Corruption::kTruncated);
  }
  EXPECT_EQ(cache->lookup(example_entry(3).key).outcome, LookupOutcome::kMiss);
  cache->reject(entry_);
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);

  const Status published = cache->publish(example_entry(4));
  EXPECT_EQ(published.code(), StatusCode::kCacheError);
  EXPECT_NE(published.message().find("only read"), std::string::npos) << published.message();
  ProcessLock lock;
  const auto never = [] {
    ADD_FAILURE() << "there is nothing to wait for";
    return false;
  };
  EXPECT_EQ(cache->lock(entry_.key, never, &lock), LockOutcome::kUnavailable);
  EXPECT_FALSE(lock.is_taken());

  const DiskCacheStats stats = cache->stats();
  EXPECT_EQ(stats.corrupt_total(), 2u);
  EXPECT_EQ(stats.quarantine_failures, 0u);
  EXPECT_EQ(stats.rejected, 1u);
  EXPECT_EQ(stats.publish_skips, 1u);
  EXPECT_EQ(stats.publish_failures_total(), 0u);
  EXPECT_TRUE(stats.lock_failures.empty());
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(cache->description(), "directory " + directory_.cache());
}

TEST_F(DiskCacheReadOnlyTest, RootMayOwnIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  file_system_->user = 12345;  // and what is there belongs to root
  const auto cache = open();
  EXPECT_FALSE(cache->is_memory_only());
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
  // The same directory is none to write into.
  EXPECT_TRUE(open_cache(directory_.cache(), file_system_)->is_memory_only());
}

TEST_F(DiskCacheReadOnlyTest, AnotherUsersDirectoryIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  ASSERT_EQ(::chown(directory_.cache().c_str(), 12345, 12345), 0);
  EXPECT_TRUE(open()->is_memory_only());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("or to root"), std::string::npos) << warnings_[0];
  ASSERT_EQ(::chown(directory_.cache().c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(entry_path(directory_.cache(), entry_.key).c_str(), 12345, 12345), 0);
  EXPECT_EQ(open()->lookup(entry_.key).corruption, Corruption::kNotPrivateFile);
}

TEST_F(DiskCacheReadOnlyTest, WhatOthersCanWriteIsNotRead) {
  for (const char* folder : {"", "/v1", "/v1/objects"}) {
    const std::string path = directory_.cache() + folder;
    ASSERT_EQ(::chmod(path.c_str(), 0775), 0);
    EXPECT_EQ(open()->lookup(entry_.key).outcome, LookupOutcome::kMiss);
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    EXPECT_EQ(open()->lookup(entry_.key).outcome, LookupOutcome::kHit);
  }
  const fs::path file = entry_path(directory_.cache(), entry_.key);
  ASSERT_EQ(::chmod(file.c_str(), 0664), 0);
  EXPECT_EQ(open()->lookup(entry_.key).corruption, Corruption::kNotPrivateFile);
}

TEST_F(DiskCacheReadOnlyTest, OneThatIsNotThereIsLeftOutWithAWarningAndNotMade) {
  const std::string absent = directory_.path() / "absent";
  const auto cache = open(absent);
  EXPECT_TRUE(cache->is_memory_only());
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(cache->publish(entry_).code(), StatusCode::kCacheError);
  EXPECT_FALSE(fs::exists(absent));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(absent), std::string::npos) << warnings_[0];
}

TEST_F(DiskCacheReadOnlyTest, OneThatVanishesIsAMissAndNotMade) {
  const auto cache = open();
  fs::remove_all(directory_.cache());
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kMiss);
  EXPECT_FALSE(cache->publish(entry_).is_ok());
  EXPECT_FALSE(fs::exists(directory_.cache()));
}

}  // namespace
}  // namespace pagejit::cache
