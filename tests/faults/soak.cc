// Soak: processes with threads that use one cache directory for a given time, while their system
// calls fail at random, processes are killed, stopped and forked, and the directory is removed. All
// the time no read may be bad, no child may hang; one process lives through all of it and may leak
// neither descriptors nor memory.
//
//   soak SECONDS [SEED]
//
// Prints what happened; exit code 0, or 1 where something was wrong, 2 for wrong use.
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/faults/garbage_collection.h"
#include "tests/faults/soak_counts.h"
#include "tests/faults/soak_worker.h"
#include "tests/faults/stored_entries.h"

namespace pagejit::soak {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kNumProcesses = 4;
constexpr int kNumThreads = 3;

struct Worker {
  pid_t pid = -1;
  uint64_t seed = 0;
};

class Soak {
 public:
  Soak(std::string directory, uint64_t seed)
      : directory_(std::move(directory)), random_(seed), next_seed_(seed * 1'000'000) {}

  void run(seconds duration) {
    for (int i = 0; i < kNumProcesses; ++i) workers_.push_back(start(i));
    const auto until = steady_clock::now() + duration;
    while (steady_clock::now() < until && counts_->failures == 0) {
      std::this_thread::sleep_for(milliseconds(random_() % 60));
      disturb();
      reap();
    }
    counts_->stop = true;
    for (const Worker& worker : workers_) {
      int status = 0;
      ::waitpid(worker.pid, &status, 0);
      judge(status);
    }
  }

  // What a reader finds when all is over.
  bool is_clean() {
    cache::DiskCacheOptions options;
    options.directory = {directory_ + "/cache", "", "soak"};
    const auto cache = cache::DiskCache::open(std::move(options));
    int num_stored = 0;
    for (int number = 0; number < kNumKeys; ++number) {
      const cache::LookupResult result = cache->lookup(entry_of(number).key);
      if (is_bad(result)) ++counts_->bad_reads;
      if (result.outcome == cache::LookupOutcome::kHit) ++num_stored;
    }
    const size_t num_temporaries = count_temporaries();
    counts_->print(num_stored, num_temporaries);
    const bool is_collected = cache::collect_garbage_of_hours_ago(directory_ + "/cache").is_ok();
    const size_t num_left = count_temporaries();
    std::printf("soak: %zu temporaries after garbage collection two hours later\n", num_left);
    return is_collected && counts_->bad_reads == 0 && counts_->failures == 0 && num_left == 0;
  }

 private:
  size_t count_temporaries() const {
    size_t number = 0;
    std::error_code ignored;
    for (const auto& item : fs::directory_iterator(directory_ + "/cache/v1/tmp", ignored)) {
      number += item.path().extension() == ".tmp" ? 1 : 0;
    }
    return number;
  }

  Worker start(int index) {
    Worker worker{-1, ++next_seed_};
    worker.pid = ::fork();
    if (worker.pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::_exit(run_worker({.directory = directory_ + "/cache",
                          .num_threads = kNumThreads,
                          .seed = worker.seed,
                          .is_measured = index == 0},
                         *counts_));
    }
    return worker;
  }

  void disturb() {
    // Number 0 is measured for leaks, and lives.
    const size_t victim = 1 + random_() % (workers_.size() - 1);
    switch (random_() % 8) {
      case 0:
      case 1:
        ::kill(workers_[victim].pid, SIGKILL);
        ++counts_->kills;
        break;
      case 2:
        ::kill(workers_[victim].pid, SIGSTOP);
        std::this_thread::sleep_for(milliseconds(100));
        ::kill(workers_[victim].pid, SIGCONT);
        ++counts_->stops;
        break;
      case 3: {
        std::error_code ignored;
        fs::remove_all(directory_ + "/cache", ignored);
        ++counts_->removals;
        break;
      }
      default:
        break;
    }
  }

  void reap() {
    for (size_t i = 0; i < workers_.size(); ++i) {
      int status = 0;
      if (::waitpid(workers_[i].pid, &status, WNOHANG) != workers_[i].pid) continue;
      judge(status);
      workers_[i] = start(static_cast<int>(i));
    }
  }

  // Workers end because they are killed, or are told to stop.
  void judge(int status) {
    const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (is_killed || is_done) return;
    ++counts_->failures;
    std::fprintf(stderr, "a process ended with status %#x\n", static_cast<unsigned>(status));
  }

  const std::string directory_;
  std::mt19937_64 random_;
  uint64_t next_seed_;
  std::vector<Worker> workers_;
  cache::SharedMemory<Counts> counts_;
};

int run(int argc, char** argv) {
  const int duration = argc >= 2 ? std::atoi(argv[1]) : 0;
  if (argc > 3 || duration < 1) {
    std::fprintf(stderr, "usage: soak SECONDS [SEED]\n");
    return 2;
  }
  // In memory where there is such a place: the store, not the disk, is what is looked at.
  std::string directory =
      ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/pagejit_soak_XXXXXX" : "/tmp/pagejit_soak_XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 2;
  bool is_clean = false;
  {
    Soak soak(directory, argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 1);
    soak.run(seconds(duration));
    is_clean = soak.is_clean();
  }
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  return is_clean ? 0 : 1;
}

}  // namespace
}  // namespace pagejit::soak

int main(int argc, char** argv) { return pagejit::soak::run(argc, argv); }
