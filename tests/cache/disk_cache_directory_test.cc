// DiskCache on directories that are wrong in some way.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"
#include "tests/cache/own_mounts.h"

namespace pagejit::cache {
namespace {

class DiskCacheDirectoryTest : public testing::Test {
 protected:
  std::unique_ptr<DiskCache> open(const DirectoryChoice& choice) {
    DiskCacheOptions options;
    options.directory = choice;
    options.file_system = file_system_;
    options.on_warning = [this](const Status& status) { warnings_.push_back(status.message()); };
    options.clock = [this] { return now_; };
    return DiskCache::open(std::move(options));
  }
  std::unique_ptr<DiskCache> open(const std::string& path) { return open({path, "", ""}); }

  // Nothing can be stored, one warning says why, and nothing fails harder than that.
  void expect_memory_only(DiskCache& cache, const std::string& reason) {
    EXPECT_TRUE(cache.is_memory_only());
    EXPECT_EQ(cache.memory_only_reason().code(), StatusCode::kCacheError);
    EXPECT_EQ(cache.lookup(entry_.key).outcome, LookupOutcome::kMiss);
    EXPECT_EQ(cache.lookup_any_compiler(entry_.key.source, nullptr).outcome, LookupOutcome::kMiss);
    EXPECT_EQ(cache.publish(entry_).code(), StatusCode::kCacheError);
    EXPECT_EQ(cache.publish(entry_).code(), StatusCode::kCacheError);
    cache.reject(entry_);
    EXPECT_EQ(cache.stats().publish_skips, 2u);
    EXPECT_EQ(cache.stats().misses, 2u);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find(reason), std::string::npos) << warnings_[0];
    warnings_.clear();
  }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  std::vector<std::string> warnings_;
  std::chrono::steady_clock::time_point now_{};
  const Entry entry_ = example_entry(1);
};

TEST_F(DiskCacheDirectoryTest, NoDirectoryIsMemoryOnly) {
  expect_memory_only(*open({"", "", "no cache directory: $HOME is not set"}), "$HOME is not set");
}

TEST_F(DiskCacheDirectoryTest, AHomeThatDoesNotExistIsMemoryOnlyAndNotMade) {
  const std::string home = directory_.path() / "nonexistent";
  expect_memory_only(*open({home + "/.cache/pagejit", home, ""}), home);
  EXPECT_FALSE(fs::exists(home));
}

TEST_F(DiskCacheDirectoryTest, AHomeThatIsAFileIsMemoryOnly) {
  const std::string home = directory_.path() / "home";
  write_file(home, "x");
  expect_memory_only(*open({home + "/.cache/pagejit", home, ""}), "Not a directory");
}

TEST_F(DiskCacheDirectoryTest, AFileALinkOrAFifoIsMemoryOnly) {
  const std::string path = directory_.path() / "x";
  write_file(path, "x");
  expect_memory_only(*open(path), "regular file");
  expect_memory_only(*open(path + "/below"), "Not a directory");
  fs::remove(path);
  fs::create_directory_symlink(directory_.path(), path);
  expect_memory_only(*open(path), "symbolic link");
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_memory_only(*open(path), "FIFO");
}

TEST_F(DiskCacheDirectoryTest, AnotherUsersOrASharedDirectoryIsMemoryOnly) {
  fs::create_directory(directory_.cache());
  file_system_->user = ::geteuid() + 1;
  expect_memory_only(*open(directory_.cache()), "belongs to user");
  file_system_->user.reset();
  ASSERT_EQ(::chmod(directory_.cache().c_str(), 0770), 0);
  expect_memory_only(*open(directory_.cache()), "mode 0770");
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(directory_.cache().c_str(), 0700), 0);
  ASSERT_EQ(::chown(directory_.cache().c_str(), 12345, 12345), 0);
  expect_memory_only(*open(directory_.cache()), "belongs to user 12345");
  EXPECT_TRUE(list(directory_.cache()).empty());
}

TEST_F(DiskCacheDirectoryTest, AnEntryInADirectoryThatBecameSharedIsNotRead) {
  const auto cache = open(directory_.cache());
  ASSERT_TRUE(cache->publish(entry_).is_ok());
  for (const char* folder : {"", "/v1", "/v1/objects"}) {
    const std::string path = directory_.cache() + folder;
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
    const LookupResult result = cache->lookup(entry_.key);
    EXPECT_EQ(result.outcome, LookupOutcome::kMiss);
    EXPECT_NE(result.status.message().find("writable"), std::string::npos);
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
  }
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(cache->stats().lookup_failures.at(EPERM), 3u);
}

TEST_F(DiskCacheDirectoryTest, PublishingPausesAfterALastingFailureAndLongerEachTime) {
  for (const int error : {ENOSPC, EDQUOT, EROFS, EACCES, EIO}) {
    const auto cache = open(directory_.path() / std::to_string(error));
    warnings_.clear();
    file_system_->fail_every(Call::kWrite, error);
    uint64_t failures = 0;
    uint64_t skips = 0;
    for (int seconds : {1, 2, 4, 8, 16, 32, 64, 64}) {
      EXPECT_FALSE(cache->publish(entry_).is_ok());
      ++failures;
      now_ += std::chrono::seconds(seconds) - std::chrono::milliseconds(1);
      const Status skipped = cache->publish(entry_);
      EXPECT_NE(skipped.message().find("pauses"), std::string::npos) << skipped.message();
      ++skips;
      now_ += std::chrono::milliseconds(1);
    }
    EXPECT_EQ(cache->stats().publish_failures.at(error), failures);
    EXPECT_EQ(cache->stats().publish_failures_total(), failures);
    EXPECT_EQ(cache->stats().publish_skips, skips);
    EXPECT_EQ(warnings_.size(), 1u);
    file_system_->fail_nothing();
    EXPECT_TRUE(cache->publish(entry_).is_ok());
    EXPECT_TRUE(cache->publish(entry_).is_ok()) << "a success ends the pause";
    file_system_->fail_every(Call::kWrite, error);
    EXPECT_FALSE(cache->publish(entry_).is_ok());
    now_ += std::chrono::seconds(1);
    file_system_->fail_nothing();
    EXPECT_TRUE(cache->publish(entry_).is_ok()) << "and the next one begins with a second";
  }
}

TEST_F(DiskCacheDirectoryTest, PublishesThatFailTogetherLengthenThePauseOnce) {
  const auto cache = open(directory_.cache());
  bool is_inner = false;
  file_system_->before = [&](int, Call call) {
    if (call != Call::kWrite) return 0;
    if (!is_inner) {
      is_inner = true;  // a second publish fails while this one is on its way to failing
      EXPECT_FALSE(cache->publish(example_entry(2)).is_ok());
    }
    return ENOSPC;
  };
  EXPECT_FALSE(cache->publish(entry_).is_ok());
  EXPECT_EQ(cache->stats().publish_failures.at(ENOSPC), 2u);
  now_ += std::chrono::seconds(1);
  file_system_->fail_nothing();
  EXPECT_TRUE(cache->publish(entry_).is_ok());
}

TEST_F(DiskCacheDirectoryTest, APassingFailureDoesNotPause) {
  const auto cache = open(directory_.cache());
  for (const int error : {EMFILE, ENFILE, ENOMEM, ESTALE}) {
    file_system_->fail_every(Call::kOpen, error);
    EXPECT_FALSE(cache->publish(entry_).is_ok());
    file_system_->fail_nothing();
    EXPECT_TRUE(cache->publish(entry_).is_ok());
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(DiskCacheDirectoryTest, AReadOnlyFileSystemIsStillRead) {
  ASSERT_TRUE(open(directory_.cache())->publish(entry_).is_ok());
  const auto cache = open(directory_.cache());
  file_system_->before = [](int, Call call) {
    const bool writes = call == Call::kMakeDirectory || call == Call::kRename ||
                        call == Call::kUnlink || call == Call::kWrite;
    return writes ? EROFS : 0;
  };
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kHit);
  EXPECT_EQ(cache->publish(example_entry(2)).code(), StatusCode::kCacheError);
  write_file(entry_path(directory_.cache(), entry_.key), "bad");
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(cache->lookup(entry_.key).outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(cache->stats().quarantine_failures, 2u);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(DiskCacheDirectoryTest, AThrowingWarningCallbackIsContained) {
  DiskCacheOptions options;
  options.on_warning = [](const Status&) { throw 1; };
  EXPECT_TRUE(DiskCache::open(std::move(options))->is_memory_only());
}

// Root is not stopped by permissions, so this runs as nobody where it can.
TEST_F(DiskCacheDirectoryTest, WithoutPermissionToWriteItIsReadAndWithoutPermissionToReadItMisses) {
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  const int result = run_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 77;
    auto cache = open(directory_.cache());
    if (!cache->publish(entry_).is_ok()) return 1;
    const std::string shard = entry_path(directory_.cache(), entry_.key).parent_path();
    const std::string tmp = directory_.cache() + "/v1/tmp";
    if (::chmod(shard.c_str(), 0500) != 0 || ::chmod(tmp.c_str(), 0500) != 0) return 2;
    if (cache->lookup(entry_.key).outcome != LookupOutcome::kHit) return 3;
    if (cache->publish(entry_).code() != StatusCode::kCacheError) return 4;
    if (cache->stats().publish_failures[EACCES] != 1) return 5;
    if (::chmod(shard.c_str(), 0) != 0) return 6;
    const LookupResult lookup = cache->lookup(entry_.key);
    if (lookup.outcome != LookupOutcome::kMiss || lookup.status.is_ok()) return 7;
    if (::chmod(directory_.cache().c_str(), 0) != 0) return 8;
    if (!open(directory_.cache())->is_memory_only()) return 9;
    ::chmod(directory_.cache().c_str(), 0700);
    ::chmod(shard.c_str(), 0700);
    ::chmod(tmp.c_str(), 0700);
    // A directory that cannot be made: /proc is nobody's to write.
    cache = open(std::string("/proc/pagejit"));
    if (cache->publish(entry_).code() != StatusCode::kCacheError) return 10;
    return 0;
  });
  if (result == 77)
    GTEST_SKIP() << "root cannot become another user here, and permissions do not stop root";
  EXPECT_EQ(result, 0);
}

TEST_F(DiskCacheDirectoryTest, AFullTinyFileSystemDropsEntriesAndKeepsTheOlderOnes) {
  const int result = run_child([&] {
    if (!get_own_mounts()) return 77;
    const char* point = directory_.path().c_str();
    if (::mount("none", point, "tmpfs", 0, "size=128k,mode=0700") != 0) return 77;
    const auto cache = open(directory_.cache());
    int num_stored = 0;
    while (num_stored < 100 && cache->publish(example_entry(num_stored, 10000)).is_ok()) {
      ++num_stored;
    }
    if (num_stored == 0 || num_stored == 100) return 1;
    if (cache->stats().publish_failures[ENOSPC] != 1) return 2;
    if (!list(directory_.cache() + "/v1/tmp").empty()) return 3;
    for (int i = 0; i < num_stored; ++i) {
      if (cache->lookup(example_entry(i, 10000).key).outcome != LookupOutcome::kHit) return 4;
    }
    if (cache->lookup(example_entry(num_stored).key).outcome != LookupOutcome::kMiss) return 5;
    fs::remove(entry_path(directory_.cache(), example_entry(0, 10000).key));
    fs::remove(entry_path(directory_.cache(), example_entry(1, 10000).key));
    now_ += std::chrono::minutes(1);
    if (!cache->publish(example_entry(200, 10000)).is_ok()) return 6;
    if (::mount("none", point, nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 11;
    const auto read_only = open(directory_.cache());
    if (read_only->is_memory_only()) return 7;
    if (read_only->lookup(example_entry(200, 10000).key).outcome != LookupOutcome::kHit) return 8;
    if (read_only->publish(example_entry(201)).is_ok()) return 9;
    if (read_only->stats().publish_failures[EROFS] != 1) return 10;
    return 0;
  });
  if (result == 77)
    GTEST_SKIP() << "this process may not mount, nor make a namespace in which it may";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace pagejit::cache
