// One process of a soak: threads that look up, publish, reject and fork, on a cache whose system
// calls fail at random. Thread-safety: one call per process.
#pragma once

#include <string>

#include "cache/entry.h"
#include "tests/faults/soak_counts.h"

namespace pagejit::soak {

inline constexpr int kNumKeys = 64;

// The one entry of this number; sizes differ from number to number.
cache::Entry entry_of(int number);

struct WorkerSettings {
  std::string directory;  // of the cache
  int num_threads = 1;
  uint64_t seed = 1;
  bool is_measured = false;  // looks at its own descriptors and memory
};

// Works until counts.stop; returns the process's exit code: 0, or 1 where something was wrong.
int run_worker(const WorkerSettings& settings, Counts& counts);

}  // namespace pagejit::soak
