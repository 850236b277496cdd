// In a directory with many entries: for how long publishes wait for evictions, and that these meet
// the limit, however slow the machine and its file system are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/disk_cache_evict.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

const microseconds kBudget = DiskCacheOptions().eviction_budget;

struct EvictionTimes {
  std::vector<microseconds> of_calls;
  int num_entries = 0;  // in the directory, at the end
  int max_entries = 0;  // the limit

  microseconds longest(double part = 1) const {
    std::vector<microseconds> sorted = of_calls;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(static_cast<double>(sorted.size() - 1) * part)];
  }
};

// Fills a directory with so many entries, each older than the next, and publishes into it with a
// limit of nine tenths of it: 400 times, and further until the limit is met, at most 4,000 times.
// After so many publishes another process goes on, which knows nothing of the directory. The
// entries published last must all be left.
EvictionTimes measure_eviction(int num_entries, FileSystem* file_system,
                               const std::function<steady_clock::time_point()>& clock,
                               int publishes_per_process) {
  constexpr int kNumPublishes = 400;
  constexpr int kMaxPublishes = 4'000;
  TestDirectory directory;
  const std::string cache_path = directory.cache();
  DiskCacheOptions without_limit;  // so that only the eviction below evicts
  without_limit.directory = {cache_path, "", "test"};
  without_limit.max_bytes = 0;
  const auto cache = DiskCache::open(without_limit);
  EXPECT_TRUE(cache->publish(example_entry(0, 0)).is_ok());
  const std::string bytes = encode_entry(example_entry(0, 0)).value();
  for (int i = 0; i < num_entries; ++i) {
    const fs::path path = entry_path(cache_path, example_entry(i, 0).key);
    ::mkdir(path.parent_path().c_str(), 0700);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    const struct timespec times[2] = {{i, 0}, {i, 0}};
    ::futimens(fd, times);
    ::close(fd);
  }
  const CacheDirectory folders(file_system, {cache_path, "", "test"});
  FileDescriptor version;
  EXPECT_TRUE(folders.open_version(/*create=*/false, &version).is_ok());
  std::unique_ptr<Eviction> eviction;
  std::deque<fs::path> latest;
  EvictionTimes times;
  times.num_entries = num_entries;
  times.max_entries = num_entries * 9 / 10;
  for (int i = 0; i < kNumPublishes || (i < kMaxPublishes && times.num_entries > times.max_entries);
       ++i) {
    if (i % publishes_per_process == 0) {
      eviction = std::make_unique<Eviction>(
          file_system, &folders,
          EvictionOptions{.max_bytes = static_cast<uint64_t>(times.max_entries) * bytes.size(),
                          .budget = kBudget,
                          .clock = clock,
                          .wall_clock = std::chrono::system_clock::now});
    }
    const Entry entry = example_entry(num_entries + i, 0);
    EXPECT_TRUE(cache->publish(entry).is_ok());
    latest.push_back(entry_path(cache_path, entry.key));
    if (latest.size() > 100) latest.pop_front();
    const EvictionCounts counts =
        eviction->after_publish(version, entry.key.file_name(), encode_entry(entry)->size());
    times.of_calls.push_back(counts.duration);
    times.num_entries += 1 - static_cast<int>(counts.evictions);
  }
  EXPECT_TRUE(
      std::all_of(latest.begin(), latest.end(), [](const auto& path) { return fs::exists(path); }));
  int num_files = 0;
  for (const auto& item : fs::recursive_directory_iterator(cache_path + "/v1/objects")) {
    if (item.is_regular_file()) ++num_files;
  }
  EXPECT_EQ(num_files, times.num_entries);
  std::printf(
      "%d entries, %zu calls: median %lld us, 99 %% %lld us, longest %lld us; %d are left\n",
      num_entries, times.of_calls.size(), static_cast<long long>(times.longest(0.5).count()),
      static_cast<long long>(times.longest(0.99).count()),
      static_cast<long long>(times.longest().count()), times.num_entries);
  return times;
}

struct SlowFileSystem {
  int num_entries;
  microseconds call;  // each call takes so long, and nothing else any time
  int publishes_per_process;
};

class SlowFileSystemTest : public testing::TestWithParam<SlowFileSystem> {};

TEST_P(SlowFileSystemTest, EvictionsKeepTheirBudgetAndMeetTheLimit) {
  FaultFileSystem file_system;
  const auto [num_entries, call, publishes_per_process] = GetParam();
  const auto clock = [&, time = call] {
    return steady_clock::time_point(file_system.num_calls() * time);
  };
  const EvictionTimes times =
      measure_eviction(num_entries, &file_system, clock, publishes_per_process);
  // Whatever the time, two folders' first entries are looked at, and some removed.
  EXPECT_LE(times.longest(), kBudget + 60 * call);
  EXPECT_LE(times.num_entries, times.max_entries);
}

INSTANTIATE_TEST_SUITE_P(DiskCacheEvictTimeTest, SlowFileSystemTest,
                         testing::Values(SlowFileSystem{5'000, microseconds(3), 20},
                                         SlowFileSystem{5'000, microseconds(50), 20},
                                         SlowFileSystem{5'000, microseconds(1'000), 50},
                                         // A tenth of the folders is empty at first.
                                         SlowFileSystem{600, microseconds(1'000), 400}),
                         [](const auto& test) {
                           return std::to_string(test.param.num_entries) + "EntriesAndCallsOf" +
                                  std::to_string(test.param.call.count()) + "us";
                         });

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Of this thread's work, user and kernel: what other programs take does not count.
steady_clock::time_point thread_time() {
  struct timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return steady_clock::time_point(std::chrono::seconds(time.tv_sec) +
                                  std::chrono::nanoseconds(time.tv_nsec));
}

TEST(DiskCacheEvictTimeTest, NoPublishWaitsLongWithFiveThousandEntries) {
  PosixFileSystem file_system;
  const EvictionTimes times = measure_eviction(5'000, &file_system, thread_time, 100);
  // A person or a scheduler notices nothing of it beside a compile of 300 ms. Of a virtual machine
  // the time taken by others may be counted here: hence not of all calls.
  EXPECT_LT(times.longest(0.99), microseconds(5'000));
}
#endif

}  // namespace
}  // namespace pagejit::cache
