// EngineStats: what an engine has done since it was created, as numbers and as text for monitoring.
// Not a registry of metrics: whoever exports them asks the engine each time. Thread-safety: plain
// values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pagejit/export.h"

namespace pagejit {

// How often a measured value fell into each range. The unit stands in the name of the field that
// holds it. `sum` and `counts` are read one after the other while others record, so the sum may lag
// behind by the values that are just being recorded.
struct Histogram {
  std::vector<double> bounds;    // upper bounds of the ranges, inclusive, ascending
  std::vector<uint64_t> counts;  // one for each bound, and one for what is above all of them
  double sum = 0;                // of all values
  uint64_t count = 0;            // of all values: the sum of `counts`
};

struct NamedCount {
  std::string name;
  uint64_t count = 0;
};

// Counts since the engine was created. to_prometheus() writes a line of help beside each name.
struct EngineStats {
  // Kernels found, by the layer that had them: loaded or in memory; a bundle; a read-only
  // directory; the cache directory; the remote.
  uint64_t memory_hits = 0;
  uint64_t bundle_hits = 0;
  uint64_t read_only_hits = 0;
  uint64_t disk_hits = 0;
  uint64_t remote_hits = 0;
  uint64_t compiles = 0;  // the failed ones included
  uint64_t compile_failures = 0;
  uint64_t compiles_cancelled = 0;  // given up by all who wanted them; not among the compiles
  uint64_t waits = 0;  // calls that waited for another thread's compile of the same key
  // Calls that waited for another process's compile of the same key; of these, calls that then read
  // what it had stored, and calls that compiled because it took too long. The rest compiled because
  // it ended without storing anything.
  uint64_t process_waits = 0;
  uint64_t process_wait_hits = 0;
  uint64_t process_wait_timeouts = 0;
  uint64_t corrupt_entries = 0;  // entries that failed their checksum or grammar and were replaced
  // The same by what was wrong with them; every kind is in the list, whether it was met or not.
  std::vector<NamedCount> corrupt_by_kind;
  uint64_t publish_failures =
      0;  // entries that could not be written; the kernel was served from memory
  std::map<int, uint64_t> publish_failures_by_errno;  // those that were met
  uint64_t evictions = 0;       // entries that were removed from the directory to make room
  uint64_t evicted_bytes = 0;   // their size
  uint64_t driver_rejects = 0;  // stored images that the driver refused and that were compiled anew
  uint64_t modules_loaded = 0;
  uint64_t misses_denied_by_policy = 0;   // calls of prepare() refused by JitPolicy
  uint64_t misses_denied_in_capture = 0;  // and because their stream was being captured
  uint64_t remote_failures = 0;  // questions to the remote that it did not answer as it should
  uint64_t remote_uploads = 0;   // entries that the remote took
  uint64_t remote_upload_failures = 0;  // and those that it did not take
  uint64_t remote_breaker_opens = 0;    // times that the remote was left alone for a while

  Histogram compile_ms;       // of the compiles that succeeded; queueing for a thread left out
  Histogram load_ms;          // an image into the driver, until it can be launched
  Histogram lookup_us;        // in all layers, hit or miss; loaded kernels left out
  Histogram process_wait_ms;  // of process_waits
};

// The Prometheus text exposition format, version 0.0.4: content type "text/plain; version=0.0.4".
// Names begin with "pagejit_", units are seconds and bytes.
// https://prometheus.io/docs/instrumenting/exposition_formats/
PAGEJIT_EXPORT std::string to_prometheus(const EngineStats& stats);

// One JSON object over several lines that ends in a newline. Its members have the names of the
// fields; "format" is 1 and is raised where a member changes its meaning.
PAGEJIT_EXPORT std::string to_json(const EngineStats& stats);

}  // namespace pagejit
