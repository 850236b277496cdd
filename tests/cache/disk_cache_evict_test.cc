// DiskCache's size limit, the touch that keeps entries from it, and temporaries left behind.
#include "cache/disk_cache_evict.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "cache/disk_cache.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;

constexpr size_t kImageBytes = 1000;

class DiskCacheEvictTest : public testing::Test {
 protected:
  DiskCacheEvictTest() {
    entry_bytes_ = encode_entry(example_entry(0, kImageBytes)).value().size();
  }

  std::unique_ptr<DiskCache> open(uint64_t max_entries) {
    DiskCacheOptions options;
    options.directory = {directory_.cache(), "", "test"};
    options.file_system = file_system_;
    options.max_bytes = max_entries * entry_bytes_;
    options.clock = [this] { return now_; };  // stands still: the budget is never spent
    options.wall_clock = [this] { return system_clock::now() + wall_offset_; };
    return DiskCache::open(std::move(options));
  }
  // Every entry here has the same size, so the limit is a number of entries.
  Entry entry(int number) const {
    Entry entry = example_entry(number, kImageBytes);
    entry.metadata.resize(example_entry(0).metadata.size());
    return entry;
  }
  fs::path path_of(int number) const { return entry_path(directory_.cache(), entry(number).key); }
  // Publishes and dates it: the smaller, the older.
  void publish(DiskCache& cache, int number, int64_t age_hours = 0) {
    ASSERT_TRUE(cache.publish(entry(number)).is_ok());
    if (age_hours != 0 && fs::exists(path_of(number))) set_age(path_of(number), age_hours);
  }
  void set_age(const fs::path& path, int64_t age_hours) {
    const struct timespec times[2] = {{0, UTIME_OMIT}, {::time(nullptr) - age_hours * 3600, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  int64_t age_seconds(const fs::path& path) const {
    struct stat info;
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return ::time(nullptr) - info.st_mtim.tv_sec;
  }
  bool exists(int number) const { return fs::exists(path_of(number)); }
  size_t num_entries() const {
    size_t num = 0;
    std::error_code ignored;
    for (const auto& item :
         fs::recursive_directory_iterator(directory_.cache() + "/v1/objects", ignored)) {
      if (item.is_regular_file()) ++num;
    }
    return num;
  }
  std::string make_temporary(const std::string& name) const {
    const std::string path = directory_.cache() + "/v1/tmp/" + name;
    write_file(path, "half an entry");
    return path;
  }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  std::chrono::steady_clock::time_point now_{};
  std::chrono::seconds wall_offset_{0};
  uint64_t entry_bytes_ = 0;
};

TEST_F(DiskCacheEvictTest, TheLeastRecentlyUsedGoFirstDownToNineTenths) {
  auto cache = open(20);
  for (int i = 0; i < 20; ++i) publish(*cache, i, /*age_hours=*/100 - i);
  EXPECT_EQ(num_entries(), 20u);
  EXPECT_EQ(cache->stats().evictions, 0u);
  cache = open(20);     // so that it looks at the times that were set
  publish(*cache, 20);  // the 21st: down to 18
  EXPECT_EQ(num_entries(), 18u);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(exists(i)) << i;
  for (int i = 3; i <= 20; ++i) EXPECT_TRUE(exists(i)) << i;
  EXPECT_EQ(cache->stats().evictions, 3u);
  EXPECT_EQ(cache->stats().evicted_bytes, 3 * entry_bytes_);
  publish(*cache, 21);
  publish(*cache, 22);
  EXPECT_EQ(cache->stats().evictions, 3u) << "there is room again";
}

TEST_F(DiskCacheEvictTest, WithoutALimitNothingGoes) {
  const auto cache = open(0);
  for (int i = 0; i < 100; ++i) publish(*cache, i);
  EXPECT_EQ(num_entries(), 100u);
}

TEST_F(DiskCacheEvictTest, WhatWasJustPublishedStaysEvenIfItIsLargerThanTheLimit) {
  const auto cache = open(1);
  publish(*cache, 1);
  Entry large = example_entry(2, 10 * kImageBytes);
  ASSERT_TRUE(cache->publish(large).is_ok());
  EXPECT_FALSE(exists(1));
  EXPECT_EQ(cache->lookup(large.key).outcome, LookupOutcome::kHit);
  publish(*cache, 3);
  EXPECT_EQ(cache->lookup(large.key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(DiskCacheEvictTest, AHitKeepsAnEntry) {
  auto cache = open(20);
  for (int i = 0; i < 20; ++i) publish(*cache, i, 100 - i);
  cache = open(20);
  publish(*cache, 19);  // looks at everything
  ASSERT_EQ(cache->lookup(entry(0).key).outcome, LookupOutcome::kHit);
  ASSERT_EQ(cache->lookup_any_compiler(entry(1).key.source, nullptr).outcome, LookupOutcome::kHit);
  publish(*cache, 20);
  EXPECT_TRUE(exists(0));
  EXPECT_TRUE(exists(1));
  for (int i = 2; i < 5; ++i) EXPECT_FALSE(exists(i)) << i;
}

TEST_F(DiskCacheEvictTest, AHitTouchesAtMostOnceAnHourAndPutsAFutureTimeRight) {
  const auto cache = open(0);
  publish(*cache, 1);
  const auto num_touches = [&] {
    const std::vector<Call> calls = file_system_->calls();
    return std::count(calls.begin(), calls.end(), Call::kTouch);
  };
  const auto look_up = [&] { EXPECT_EQ(cache->lookup(entry(1).key).outcome, LookupOutcome::kHit); };
  look_up();
  EXPECT_EQ(num_touches(), 0) << "it is new";
  set_age(path_of(1), 2);
  look_up();
  look_up();
  EXPECT_EQ(num_touches(), 1);
  EXPECT_LT(age_seconds(path_of(1)), 60);
  set_age(path_of(1), -1000);
  look_up();
  look_up();
  EXPECT_EQ(num_touches(), 2);
  EXPECT_GT(age_seconds(path_of(1)), -60);
  wall_offset_ = hours(-5);  // the clock was set back: the file lies in the future, and stays there
  look_up();
  EXPECT_EQ(num_touches(), 3);
  wall_offset_ = hours(0);
  set_age(path_of(1), 2);
  file_system_->fail_every(Call::kTouch, EROFS);
  look_up();
  EXPECT_TRUE(cache->stats().lookup_failures.empty());
  EXPECT_EQ(cache->lookup_file(entry(1).key.file_name()).outcome, LookupOutcome::kHit);
  EXPECT_EQ(num_touches(), 4) << "a tool that looks is no user";
}

TEST_F(DiskCacheEvictTest, WhatOtherProcessesStoreCounts) {
  EXPECT_EQ(run_child([&] {
              const auto other = open(0);
              for (int i = 0; i < 30; ++i) publish(*other, i, 100 - i);
              return 0;
            }),
            0);
  const auto cache = open(20);
  publish(*cache, 30);
  EXPECT_EQ(num_entries(), 18u);
  EXPECT_TRUE(exists(30));
}

TEST_F(DiskCacheEvictTest, AnEntryPublishedAgainMeanwhileStays) {
  const auto cache = open(20);
  for (int i = 0; i < 20; ++i) publish(*cache, i, 100 - i);
  const auto other = open_cache(directory_.cache());
  // Between the look at the folders and the removal another process makes the oldest ones anew.
  bool is_removing = false;
  file_system_->before = [&](int, Call call) {
    if (call == Call::kLock && !is_removing) {
      is_removing = true;
    } else if (call == Call::kStatAt && is_removing) {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(other->publish(entry(i)).is_ok());
    }
    return 0;
  };
  publish(*cache, 20);
  file_system_->fail_nothing();
  EXPECT_TRUE(is_removing);
  EXPECT_EQ(num_entries(), 21u);
  EXPECT_EQ(cache->stats().evictions, 0u);
}

TEST_F(DiskCacheEvictTest, OneProcessIsEnough) {
  const auto cache = open(20);
  for (int i = 0; i < 20; ++i) publish(*cache, i, 100 - i);
  PosixFileSystem real;
  FileDescriptor version;
  ASSERT_EQ(
      open_file(&real, AT_FDCWD, directory_.cache() + "/v1", O_RDONLY | O_DIRECTORY, 0, &version),
      0);
  ProcessLock other;
  ASSERT_TRUE(other.open(&real, version.get()).is_ok());
  ASSERT_EQ(other.try_take_for_removal(), 0);
  publish(*cache, 20);
  EXPECT_EQ(num_entries(), 21u) << "another one is at it";
  other.release();
  publish(*cache, 21);
  EXPECT_EQ(num_entries(), 18u);
}

TEST_F(DiskCacheEvictTest, WithoutLocksItGoesOnWithout) {
  const auto cache = open(20);
  for (int i = 0; i < 20; ++i) publish(*cache, i, 100 - i);
  file_system_->fail_every(Call::kLock, ENOLCK);
  publish(*cache, 20);
  EXPECT_EQ(num_entries(), 18u);
}

TEST_F(DiskCacheEvictTest, ADirectoryRemovedDuringAnyCallOfAnEvictionDoesNoHarm) {
  int num_calls = 1;
  for (int index = 0; index < num_calls; ++index) {
    auto cache = open(5);
    for (int i = 0; i < 5; ++i) publish(*cache, i, 100 - i);
    const int base = file_system_->num_calls();
    file_system_->before = [&](int i, Call) {
      if (i - base == index) fs::remove_all(directory_.cache());
      return 0;
    };
    EXPECT_TRUE(cache->publish(entry(6)).is_ok()) << index;
    num_calls = std::max(num_calls, file_system_->num_calls() - base);
    file_system_->fail_nothing();
    publish(*cache, 7);
    EXPECT_EQ(cache->lookup(entry(7).key).outcome, LookupOutcome::kHit);
    fs::remove_all(directory_.cache());
  }
  EXPECT_GT(num_calls, 50);
}

TEST_F(DiskCacheEvictTest, AnyFailingCallOfAnEvictionDoesNoHarm) {
  int num_calls = 1;
  for (int index = 0; index < num_calls; ++index) {
    for (const int error : {EIO, EMFILE, ESTALE, EACCES, ENOENT}) {
      auto cache = open(5);
      for (int i = 0; i < 5; ++i) publish(*cache, i, 100 - i);
      // The calls of the publish itself are another test's.
      const int base = file_system_->num_calls();
      bool is_published = false;
      int first = 0;
      file_system_->before = [&](int i, Call call) {
        if (is_published && first == 0) first = i;
        if (call == Call::kRename) is_published = true;
        return first != 0 && i - first == index ? error : 0;
      };
      const size_t num_open = num_open_files();
      EXPECT_TRUE(cache->publish(entry(6)).is_ok()) << index;
      EXPECT_EQ(num_open_files(), num_open);
      num_calls = std::max(num_calls, file_system_->num_calls() - base);
      file_system_->fail_nothing();
      EXPECT_EQ(cache->lookup(entry(6).key).outcome, LookupOutcome::kHit);
      publish(*cache, 7);
      EXPECT_LE(num_entries(), 6u);
      fs::remove_all(directory_.cache());
    }
  }
  EXPECT_GT(num_calls, 50);
}

TEST_F(DiskCacheEvictTest, ProcessesThatPublishTogetherKeepTheLimitAndLoseNothingTheyHold) {
  constexpr int kProcesses = 3;
  constexpr int kEach = 60;
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(std::make_unique<ChildProcess>([&, process] {
      const auto cache = open(40);
      for (int i = 0; i < kEach; ++i) {
        const int number = process * kEach + i;
        if (!cache->publish(entry(number)).is_ok()) return 1;
        if (cache->lookup(entry((number * 7) % (kProcesses * kEach)).key).outcome ==
            LookupOutcome::kCorrupt) {
          return 2;
        }
      }
      return 0;
    }));
  }
  for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
  const auto cache = open(40);
  publish(*cache, 1000);
  EXPECT_LE(num_entries(), 40u);
  EXPECT_GT(num_entries(), 20u) << "and no more than needed went";
}

TEST_F(DiskCacheEvictTest, OldTemporariesGoAndOthersStay) {
  publish(*open(0), 1);
  const std::string temporary = make_temporary(std::string(32, 'a') + ".tmp");
  const std::string other = make_temporary(".nfs000001");
  const auto publish_after = [&](hours offset) {
    wall_offset_ = offset;
    const auto cache = open(0);
    publish(*cache, 1);
    return cache->stats().temporaries_removed;
  };
  EXPECT_EQ(publish_after(hours(0)), 0u) << "it may be in use";
  set_age(temporary, 48);
  EXPECT_EQ(publish_after(hours(0)), 0u) << "its time of change is now";
  set_age(temporary, -48);
  EXPECT_EQ(publish_after(hours(2)), 0u) << "its time lies in the future";
  set_age(temporary, 0);
  EXPECT_EQ(publish_after(hours(-2)), 0u) << "the clock was set back";
  EXPECT_TRUE(fs::exists(temporary));
  EXPECT_EQ(publish_after(hours(2)), 1u);
  EXPECT_FALSE(fs::exists(temporary));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(DiskCacheEvictTest, APublishWhoseTemporaryWasTakenAwayIsDoneAgain) {
  const auto cache = open(0);
  publish(*cache, 1);
  bool has_removed = false;
  file_system_->before = [&](int, Call call) {
    if (call == Call::kRename && !has_removed) {
      has_removed = true;
      for (const std::string& name : list(directory_.cache() + "/v1/tmp")) {
        fs::remove(directory_.cache() + "/v1/tmp/" + name);
      }
    }
    return 0;
  };
  publish(*cache, 2);
  EXPECT_TRUE(has_removed);
  EXPECT_EQ(cache->lookup(entry(2).key).outcome, LookupOutcome::kHit);
}

TEST_F(DiskCacheEvictTest, TemporariesAreLookedAtOnceAnHour) {
  const auto cache = open(0);
  publish(*cache, 1);
  const std::string temporary = make_temporary(std::string(32, 'a') + ".tmp");
  wall_offset_ = hours(2);
  publish(*cache, 1);
  EXPECT_TRUE(fs::exists(temporary));
  now_ += hours(1);
  publish(*cache, 1);
  EXPECT_FALSE(fs::exists(temporary));
}

}  // namespace
}  // namespace pagejit::cache
