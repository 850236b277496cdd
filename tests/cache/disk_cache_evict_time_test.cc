// For how long publishes wait for evictions, in a directory with many entries.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/disk_cache_evict.h"
#include "tests/cache/cache_test_util.h"

namespace pagejit::cache {
namespace {

using std::chrono::microseconds;

// What the bound is for: a person or a scheduler notices nothing of it beside a compile of 300 ms.
constexpr microseconds kBound{5'000};

struct EvictionTimes {
  std::vector<microseconds> of_calls;  // sorted
  uint64_t evictions = 0;
  size_t entries_left = 0;
};

// Of this thread's work, user and kernel: what other programs take does not count.
std::chrono::steady_clock::time_point thread_time() {
  struct timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(time.tv_sec) +
                                               std::chrono::nanoseconds(time.tv_nsec));
}

// Fills a directory with so many small files named like entries, each older than the next, and
// publishes into it with a limit of nine tenths of it.
EvictionTimes measure_eviction(int num_entries, int num_publishes) {
  constexpr size_t kBytes = 300;
  TestDirectory directory;
  const std::string cache_path = directory.cache();
  EXPECT_TRUE(open_cache(cache_path)->publish(example_entry(-1)).is_ok());
  const std::string bytes(kBytes, 'x');
  for (int i = 0; i < num_entries; ++i) {
    const fs::path path = entry_path(cache_path, example_entry(i, 0).key);
    ::mkdir(path.parent_path().c_str(), 0700);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    const struct timespec times[2] = {{i, 0}, {i, 0}};
    ::futimens(fd, times);
    ::close(fd);
  }
  PosixFileSystem file_system;
  const CacheDirectory folders(&file_system, {cache_path, "", "test"});
  FileDescriptor version;
  EXPECT_TRUE(folders.open_version(/*create=*/false, &version).is_ok());
  DiskCacheOptions without_limit;  // so that only the eviction below evicts
  without_limit.directory = {cache_path, "", "test"};
  without_limit.max_bytes = 0;
  const auto cache = DiskCache::open(without_limit);
  EvictionTimes times;
  for (int i = 0; i < num_publishes;) {
    // A process now and then begins anew, and knows nothing of the directory.
    Eviction eviction(&file_system, &folders,
                      {.max_bytes = static_cast<uint64_t>(num_entries) * kBytes * 9 / 10,
                       .budget = without_limit.eviction_budget,
                       .clock = thread_time,
                       .wall_clock = std::chrono::system_clock::now});
    for (int j = 0; j < num_publishes / 4; ++j, ++i) {
      const Entry entry = example_entry(num_entries + i, 0);
      EXPECT_TRUE(cache->publish(entry).is_ok());
      const EvictionCounts counts =
          eviction.after_publish(version, entry.key.file_name(), encode_entry(entry)->size());
      times.of_calls.push_back(counts.duration);
      times.evictions += counts.evictions;
    }
  }
  for (const auto& item : fs::recursive_directory_iterator(cache_path + "/v1/objects")) {
    if (item.is_regular_file()) ++times.entries_left;
  }
  std::sort(times.of_calls.begin(), times.of_calls.end());
  const auto quantile = [&](double part) {
    const auto last = static_cast<double>(times.of_calls.size() - 1);
    return static_cast<long long>(times.of_calls[static_cast<size_t>(last * part)].count());
  };
  std::printf(
      "%d entries, %d calls: median %lld us, 99 %% %lld us, 99.9 %% %lld us, longest %lld us; "
      "%llu entries went, %zu are left\n",
      num_entries, num_publishes, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1),
      static_cast<unsigned long long>(times.evictions), times.entries_left);
  return times;
}

TEST(DiskCacheEvictTimeTest, NoPublishWaitsLongWithFiveThousandEntries) {
  const EvictionTimes times = measure_eviction(5'000, 400);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(times.of_calls.back(), kBound);
#endif
  EXPECT_GT(times.evictions, 500u);
  EXPECT_LE(times.entries_left, 5'000u * 9 / 10);
}

}  // namespace
}  // namespace pagejit::cache
