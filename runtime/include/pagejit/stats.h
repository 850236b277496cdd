// EngineStats: what an engine has done since it was created. Thread-safety: plain values.
#pragma once

#include <cstdint>

namespace pagejit {

// Counts since the engine was created.
struct EngineStats {
  uint64_t memory_hits = 0;
  uint64_t disk_hits = 0;
  uint64_t compiles = 0;
  uint64_t compile_failures = 0;
  uint64_t waits = 0;  // calls that waited for another thread's compile of the same key
  // Calls that waited for another process's compile of the same key; of these, calls that then read
  // what it had stored, and calls that compiled because it took too long. The rest compiled because
  // it ended without storing anything.
  uint64_t process_waits = 0;
  uint64_t process_wait_hits = 0;
  uint64_t process_wait_timeouts = 0;
  uint64_t corrupt_entries = 0;  // entries that failed their checksum or grammar and were replaced
  uint64_t publish_failures =
      0;  // entries that could not be written; the kernel was served from memory
  uint64_t driver_rejects = 0;  // stored images that the driver refused and that were compiled anew
  uint64_t modules_loaded = 0;
  uint64_t misses_denied_by_policy = 0;   // calls of prepare() refused by JitPolicy
  uint64_t misses_denied_in_capture = 0;  // and because their stream was being captured
};

}  // namespace pagejit
