#include "cache/cache_maintenance.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;

class CacheMaintenanceTest : public testing::Test {
 protected:
  CacheMaintenance open(bool read_only = false) {
    MaintenanceOptions options;
    options.directory = {directory_.cache(), "", "test"};
    options.read_only = read_only;
    options.file_system = file_system_;
    options.wall_clock = [this] { return system_clock::now() + wall_offset_; };
    return CacheMaintenance(std::move(options));
  }
  fs::path v1() const { return fs::path(directory_.cache()) / "v1"; }
  fs::path path_of(int number) const {
    return entry_path(directory_.cache(), example_entry(number).key);
  }
  void publish(int number) {
    ASSERT_TRUE(open_cache(directory_.cache())->publish(example_entry(number)).is_ok());
  }
  void set_time(const fs::path& path, time_t seconds) {
    const struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  // An entry of another format version under a name of this one.
  void make_other_version(int number) {
    std::string bytes = encode_entry(example_entry(number)).value();
    bytes[8] = 2;
    write_file(path_of(number), bytes);
  }

  TestDirectory directory_;
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  std::chrono::seconds wall_offset_{0};
};

TEST_F(CacheMaintenanceTest, ADirectoryThatDoesNotExistIsEmptyAndNotMade) {
  CacheMaintenance maintenance = open();
  EXPECT_EQ(maintenance.usage()->entries.files, 0u);
  EXPECT_TRUE(maintenance.list(true)->empty());
  EXPECT_EQ(maintenance.verify(false)->intact, 0u);
  EXPECT_EQ(maintenance.collect_garbage(1)->evicted.files, 0u);
  EXPECT_EQ(maintenance.clear()->files, 0u);
  EXPECT_EQ(maintenance.read(example_entry(1).key.file_name()).status().code(),
            StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(directory_.cache()));
}

TEST_F(CacheMaintenanceTest, ADirectoryThatIsNotOursIsAnError) {
  write_file(directory_.cache(), "x");
  EXPECT_EQ(open().usage().status().code(), StatusCode::kCacheError);
  fs::remove(directory_.cache());
  publish(1);
  ASSERT_EQ(::chmod(directory_.cache().c_str(), 0777), 0);
  EXPECT_EQ(open().usage().status().code(), StatusCode::kCacheError);
  EXPECT_EQ(open().clear().status().code(), StatusCode::kCacheError);
  EXPECT_TRUE(fs::exists(path_of(1)));
}

TEST_F(CacheMaintenanceTest, UsageCountsEachKindOfFile) {
  Entry other_compiler = example_entry(1);
  other_compiler.key.compiler = sha256({"another"});
  publish(1);
  publish(2);
  ASSERT_TRUE(open_cache(directory_.cache())->publish(other_compiler).is_ok());
  publish(3);
  write_file(path_of(3), "bad");
  EXPECT_EQ(open_cache(directory_.cache())->lookup(example_entry(3).key).outcome,
            LookupOutcome::kCorrupt);
  write_file(v1() / "tmp" / (std::string(32, '0') + ".tmp"), "12345");
  write_file(path_of(1).parent_path() / ".nfs01", "not an entry");

  const CacheUsage usage = open().usage().value();
  EXPECT_EQ(usage.entries.files, 3u);
  EXPECT_EQ(usage.entries.bytes, 3 * encode_entry(example_entry(1))->size());
  ASSERT_EQ(usage.by_compiler.size(), 2u);
  EXPECT_EQ(usage.by_compiler.at(to_hex(example_entry(1).key.compiler).substr(0, 8)).files, 2u);
  EXPECT_EQ(usage.by_compiler.at(to_hex(other_compiler.key.compiler).substr(0, 8)).files, 1u);
  EXPECT_EQ(usage.temporaries.files, 1u);
  EXPECT_EQ(usage.temporaries.bytes, 5u);
  EXPECT_EQ(usage.bad.files, 1u);
  EXPECT_EQ(usage.bad.bytes, 3u);
}

TEST_F(CacheMaintenanceTest, TheListSaysNameSizeTimeAndMetadata) {
  for (int i = 0; i < 20; ++i) publish(i);
  set_time(path_of(7), 1'000'000'000);
  write_file(path_of(8), "bad");
  const std::vector<ListedEntry> entries = open().list(/*with_metadata=*/true).value();
  ASSERT_EQ(entries.size(), 20u);
  for (size_t i = 1; i < entries.size(); ++i) {
    EXPECT_LT(entries[i - 1].file_name, entries[i].file_name);
  }
  int num_found = 0;
  for (const ListedEntry& entry : entries) {
    if (entry.file_name == example_entry(7).key.file_name()) {
      EXPECT_EQ(entry.metadata, "metadata of 7");
      EXPECT_EQ(entry.bytes, encode_entry(example_entry(7))->size());
      EXPECT_EQ(system_clock::to_time_t(entry.used_at), 1'000'000'000);
      ++num_found;
    }
    if (entry.file_name == example_entry(8).key.file_name()) {
      EXPECT_EQ(entry.metadata, "");
      ++num_found;
    }
  }
  EXPECT_EQ(num_found, 2);
  EXPECT_EQ(open().list(/*with_metadata=*/false)->at(0).metadata, "");
}

TEST_F(CacheMaintenanceTest, VerifyFindsEachCorruptEntryAndSetsItAside) {
  for (int i = 0; i < 10; ++i) publish(i);
  std::string damaged = read_file(path_of(3));
  damaged.back() ^= 1;
  write_file(path_of(3), damaged);
  write_file(path_of(4), "");
  for (const bool dry_run : {true, true, false}) {
    const VerifyReport report = open(dry_run).verify(dry_run).value();
    EXPECT_EQ(report.intact, 8u);
    EXPECT_GT(report.intact_bytes, 800u);
    ASSERT_EQ(report.corrupt.size(), 2u);
    EXPECT_FALSE(report.corrupt[0].reason.empty());
    EXPECT_EQ(fs::exists(path_of(3)), dry_run);
    EXPECT_EQ(fs::exists(path_of(4)), dry_run);
  }
  EXPECT_TRUE(open().verify(false)->corrupt.empty());
  EXPECT_EQ(open().usage()->bad.files, list(v1() / "bad").size());
}

TEST_F(CacheMaintenanceTest, WhatCannotBeReadIsNotCalledCorrupt) {
  publish(1);
  file_system_->fail_every(Call::kRead, EIO);
  const VerifyReport report = open().verify(false).value();
  EXPECT_TRUE(report.corrupt.empty());
  ASSERT_EQ(report.unreadable.size(), 1u);
  EXPECT_TRUE(fs::exists(path_of(1)));
}

TEST_F(CacheMaintenanceTest, GarbageIsTemporariesBadOtherVersionsAndWhatIsOverTheLimit) {
  for (int i = 10; i < 30; ++i) {
    publish(i);
    set_time(path_of(i), 1'000'000 + i);
  }
  publish(1);
  make_other_version(1);
  publish(2);
  write_file(path_of(2), "bad");
  EXPECT_EQ(open_cache(directory_.cache())->lookup(example_entry(2).key).outcome,
            LookupOutcome::kCorrupt);
  const fs::path temporary = v1() / "tmp" / (std::string(32, '0') + ".tmp");
  write_file(temporary, "1");

  GarbageReport report = open().collect_garbage(0).value();
  EXPECT_EQ(report.temporaries.files, 0u) << "it may be in use";
  EXPECT_EQ(report.bad.files, 1u);
  EXPECT_EQ(report.other_versions.files, 1u);
  EXPECT_EQ(report.evicted.files, 0u) << "no limit";
  wall_offset_ = hours(2);
  const uint64_t entry_bytes = encode_entry(example_entry(10))->size();
  report = open().collect_garbage(5 * entry_bytes).value();
  EXPECT_EQ(report.temporaries.files, 1u);
  EXPECT_EQ(report.bad.files, 0u);
  EXPECT_EQ(report.evicted.files, 15u);
  EXPECT_EQ(report.evicted.bytes, 15 * entry_bytes);
  for (int i = 10; i < 30; ++i) EXPECT_EQ(fs::exists(path_of(i)), i >= 25) << i;
}

TEST_F(CacheMaintenanceTest, ClearRemovesEverythingThatCanBeMadeAgain) {
  for (int i = 0; i < 20; ++i) publish(i);
  write_file(path_of(2), "bad");
  EXPECT_EQ(open_cache(directory_.cache())->lookup(example_entry(2).key).outcome,
            LookupOutcome::kCorrupt);
  const fs::path temporary = v1() / "tmp" / (std::string(32, '0') + ".tmp");
  write_file(temporary, "1");
  write_file(fs::path(directory_.cache()) / "notes", "the user's");
  const FileCount removed = open().clear().value();
  EXPECT_EQ(removed.files, 20u);
  EXPECT_EQ(open().usage()->entries.files, 0u);
  EXPECT_EQ(open().usage()->bad.files, 0u);
  EXPECT_TRUE(fs::exists(temporary)) << "somebody is writing it";
  EXPECT_TRUE(fs::exists(fs::path(directory_.cache()) / "notes"));
  publish(1);
  EXPECT_EQ(open().usage()->entries.files, 1u);
}

TEST_F(CacheMaintenanceTest, AnEntryIsReadByItsName) {
  publish(1);
  const std::string name = example_entry(1).key.file_name();
  EXPECT_EQ(open(/*read_only=*/true).read(name).value(), example_entry(1));
  EXPECT_EQ(open().read("../x").status().code(), StatusCode::kNotFound);
  write_file(path_of(1), "bad");
  EXPECT_EQ(open().read(name).status().code(), StatusCode::kDataCorrupt);
  EXPECT_TRUE(fs::exists(path_of(1))) << "reading sets nothing aside";
}

TEST_F(CacheMaintenanceTest, ReadOnlyRemovesNothing) {
  publish(1);
  CacheMaintenance maintenance = open(/*read_only=*/true);
  EXPECT_EQ(maintenance.clear().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(maintenance.collect_garbage(1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(maintenance.verify(/*dry_run=*/false).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(maintenance.usage()->entries.files, 1u);
  EXPECT_TRUE(fs::exists(path_of(1)));
}

TEST_F(CacheMaintenanceTest, BesideAPublishingProcessNothingIsEverCorrupt) {
  struct Shared {
    std::atomic<bool> stop{false};
    std::atomic<int> published{0};
  };
  SharedMemory<Shared> shared;
  ChildProcess publisher([&] {
    const auto cache = open_cache(directory_.cache());
    for (int i = 0; !shared->stop; ++i) {
      const Entry entry = example_entry(i % 50);
      if (!cache->publish(entry).is_ok()) return 1;
      if (cache->lookup(entry.key).outcome == LookupOutcome::kCorrupt) return 2;
      ++shared->published;
    }
    return 0;
  });
  const uint64_t entry_bytes = encode_entry(example_entry(1))->size();
  for (int round = 0; round < 30; ++round) {
    const int published = shared->published;
    EXPECT_TRUE(open().verify(false)->corrupt.empty());
    EXPECT_TRUE(open().collect_garbage(10 * entry_bytes).is_ok());
    EXPECT_TRUE(open().list(true).is_ok());
    EXPECT_TRUE(round % 10 != 9 || open().clear().is_ok());
    ASSERT_TRUE(wait_for([&] { return shared->published > published; }));
  }
  shared->stop = true;
  EXPECT_EQ(publisher.wait(), 0);
}

TEST_F(CacheMaintenanceTest, AFailingCallIsAnErrorOrLeftOutAndLeaksNothing) {
  for (int i = 0; i < 3; ++i) publish(i);
  const int base = file_system_->num_calls();
  EXPECT_TRUE(open().verify(false).is_ok());
  EXPECT_TRUE(open().usage().is_ok());
  const int num_calls = file_system_->num_calls() - base;
  for (int index = 0; index < num_calls; ++index) {
    for (const int error : {EIO, EMFILE, EACCES, ESTALE}) {
      const size_t num_open = num_open_files();
      file_system_->fail_at(index, error);
      const Result<VerifyReport> report = open().verify(false);
      EXPECT_TRUE(!report.is_ok() || report->corrupt.empty());
      const Result<CacheUsage> usage = open().usage();
      file_system_->fail_nothing();
      EXPECT_EQ(num_open_files(), num_open);
    }
  }
  EXPECT_EQ(open().usage()->entries.files, 3u);
}

}  // namespace
}  // namespace pagejit::cache
