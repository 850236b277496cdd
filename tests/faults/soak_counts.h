// Counts: what the processes of a soak count together, in memory that they share. Thread-safety:
// all members are atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "tests/cache/child_process.h"

namespace pagejit::soak {

struct Counts {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> lookups{0};
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> publishes{0};
  std::atomic<uint64_t> failed_publishes{0};
  std::atomic<uint64_t> rejects{0};
  std::atomic<uint64_t> faults{0};  // of processes that ended by themselves
  std::atomic<uint64_t> kills{0};
  std::atomic<uint64_t> stops{0};
  std::atomic<uint64_t> removals{0};
  std::atomic<uint64_t> forks{0};
  std::atomic<uint64_t> bad_reads{0};
  std::atomic<uint64_t> failures{0};  // hung children, leaks, processes that crashed
  // Of the process that lives through all: after its first second, and at the end.
  std::atomic<uint64_t> first_descriptors{0};
  std::atomic<uint64_t> last_descriptors{0};
  std::atomic<uint64_t> first_rss_kib{0};
  std::atomic<uint64_t> last_rss_kib{0};

  void print(int num_stored, size_t num_temporaries) const {
    const auto number = [](const std::atomic<uint64_t>& count) {
      return static_cast<unsigned long long>(count.load());
    };
    std::printf("soak: %llu look-ups, %llu hits, %llu published, %llu not, %llu rejected\n",
                number(lookups), number(hits), number(publishes), number(failed_publishes),
                number(rejects));
    std::printf("soak: %llu faults, %llu kills, %llu stops, %llu removals, %llu forks\n",
                number(faults), number(kills), number(stops), number(removals), number(forks));
    std::printf("soak: descriptors %llu -> %llu, memory %llu -> %llu KiB\n",
                number(first_descriptors), number(last_descriptors), number(first_rss_kib),
                number(last_rss_kib));
    std::printf("soak: in the end %d entries, %zu temporaries left over\n", num_stored,
                num_temporaries);
    std::printf("soak: %llu bad reads, %llu other failures\n", number(bad_reads), number(failures));
  }
};

}  // namespace pagejit::soak
