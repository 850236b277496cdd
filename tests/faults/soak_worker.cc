#include "tests/faults/soak_worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "tests/faults/stored_entries.h"
#include "tests/faults/syscall_shim.h"

namespace pagejit::soak {
namespace {

using cache::DiskCache;
using cache::LookupOutcome;
using cache::LookupResult;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

uint64_t num_descriptors() {
  uint64_t number = 0;
  for ([[maybe_unused]] const auto& item : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++number;
  }
  return number;
}

uint64_t rss_kib() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

std::unique_ptr<DiskCache> open_cache(const std::string& directory) {
  cache::DiskCacheOptions options;
  options.directory = {directory, "", "soak"};
  options.lock_timeout = milliseconds(200);  // others are stopped for 100 ms
  options.max_bytes = 1 << 20;               // half of what all entries take
  // A clock that runs a thousand times faster: pauses after a full disk are over at once.
  options.clock = [] {
    const auto now = steady_clock::now().time_since_epoch();
    return steady_clock::time_point(now * 1000);
  };
  return DiskCache::open(std::move(options));
}

class Thread {
 public:
  Thread(DiskCache& cache, const WorkerSettings& settings, int index, Counts& counts)
      : cache_(cache),
        settings_(settings),
        counts_(counts),
        random_(settings.seed * 100 + static_cast<uint64_t>(index)) {}

  void run() {
    while (!counts_.stop && counts_.failures == 0) step();
  }

 private:
  void step() {
    const cache::Entry entry = entry_of(static_cast<int>(random_() % kNumKeys));
    const auto what = random_() % 200;
    if (what < 110) {
      check(cache_.lookup(entry.key));
    } else if (what < 130) {
      check(cache_.lookup_any_compiler(
          entry.key.source, [](const cache::Entry&, const cache::Entry&) { return false; }));
    } else if (what < 192) {
      compute(entry);
    } else if (what < 198) {
      cache_.reject(entry);
      ++counts_.rejects;
    } else {
      look_up_in_a_child(entry);
    }
  }

  bool check(const LookupResult& result) {
    ++counts_.lookups;
    if (is_bad(result)) {
      ++counts_.bad_reads;
      ++counts_.failures;
      std::fprintf(stderr, "a bad read: %s\n", result.status.to_string().c_str());
    }
    if (result.outcome == LookupOutcome::kHit) ++counts_.hits;
    return result.outcome == LookupOutcome::kHit;
  }

  // As an engine does.
  void compute(const cache::Entry& entry) {
    if (check(cache_.lookup(entry.key))) return;
    cache::ProcessLock lock;
    const auto outcome = cache_.lock(
        entry.key, [&] { return check(cache_.lookup(entry.key)); }, &lock);
    if (outcome == cache::LockOutcome::kPublished) return;
    ++(cache_.publish(entry).is_ok() ? counts_.publishes : counts_.failed_publishes);
  }

  // A child of a process with threads: it makes its own cache, and must come to an end.
  void look_up_in_a_child(const cache::Entry& entry) {
    static constexpr unsigned kHangSeconds = 20;
    ++counts_.forks;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kHangSeconds);
      const auto cache = open_cache(settings_.directory);
      const bool is_bad_read = is_bad(cache->lookup(entry.key));
      ::_exit(is_bad_read ? 1 : 0);
    }
    int status = 0;
    if (child > 0 && ::waitpid(child, &status, 0) == child && status != 0) {
      ++counts_.failures;
      std::fprintf(stderr, "a forked child ended with status %#x\n", static_cast<unsigned>(status));
    }
  }

  DiskCache& cache_;
  const WorkerSettings& settings_;
  Counts& counts_;
  std::mt19937_64 random_;
};

// Descriptors and memory of this process while and after its threads work.
class Measurement {
 public:
  explicit Measurement(Counts& counts) : counts_(counts), idle_descriptors_(num_descriptors()) {}

  void while_threads_work() {
    const auto begin = steady_clock::now();
    while (!counts_.stop && counts_.failures == 0) {
      std::this_thread::sleep_for(milliseconds(50));
      // Allocators and stacks have their size after a second.
      if (counts_.first_rss_kib == 0 && steady_clock::now() - begin > std::chrono::seconds(1)) {
        counts_.first_rss_kib = rss_kib();
      }
      // A thread has at most a handful open at a time; the caller's loop over /proc one more.
      static constexpr uint64_t kMostInUse = 40;
      if (num_descriptors() > idle_descriptors_ + kMostInUse) fail("descriptors leak");
    }
  }

  void after_threads() {
    counts_.first_descriptors = idle_descriptors_;
    counts_.last_descriptors = num_descriptors();
    counts_.last_rss_kib = rss_kib();
    if (counts_.last_descriptors != idle_descriptors_) fail("descriptors have leaked");
    // Far more than fragments, far less than what even one byte in each of the calls would add up
    // to in an hour.
    static constexpr uint64_t kMostGrowthKib = 16 * 1024;
    if (counts_.first_rss_kib != 0 &&
        counts_.last_rss_kib > counts_.first_rss_kib + kMostGrowthKib) {
      fail("memory has leaked");
    }
  }

 private:
  void fail(const char* what) {
    ++counts_.failures;
    std::fprintf(stderr, "%s\n", what);
  }

  Counts& counts_;
  const uint64_t idle_descriptors_;
};

}  // namespace

cache::Entry entry_of(int number) {
  // 1 KB to 64 KB: from less than a page to a large cubin.
  return cache::stored_entry(number, 1000 + static_cast<size_t>(number) * 1000);
}

int run_worker(const WorkerSettings& settings, Counts& counts) {
  pagejit_faults::Plan plan;
  plan.action = pagejit_faults::Action::kFail;
  plan.one_in = 60;  // about every other publish meets one
  plan.seed = settings.seed;
  std::snprintf(plan.folder, sizeof plan.folder, "%s", settings.directory.c_str());
  const auto cache = open_cache(settings.directory);
  Measurement measurement(counts);
  pagejit_faults_set(&plan);

  std::vector<std::thread> threads;
  for (int i = 0; i < settings.num_threads; ++i) {
    threads.emplace_back([&, i] { Thread(*cache, settings, i, counts).run(); });
  }
  if (settings.is_measured) measurement.while_threads_work();
  for (std::thread& thread : threads) thread.join();
  counts.faults += pagejit_faults_hits();
  pagejit_faults_set(nullptr);
  if (settings.is_measured) measurement.after_threads();
  return counts.failures == 0 ? 0 : 1;
}

}  // namespace pagejit::soak
