// CacheWriteBatch: keys, values and slots to write, as host arrays, what the caches should hold
// afterwards, computed by plain loops, and a launch that is compared with it. Thread-safety: plain
// values, free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

// Of the strided layout.
enum class RowOrder { kNhd, kHnd, kInterleaved };

struct CacheWriteOptions {
  CacheWriteSpec spec;
  int num_tokens = 42;
  int unused_tokens = 3;  // rows of key and value behind slot_mapping's length
  int num_kv_heads = 8;
  int num_q_heads = 0;
  int64_t num_blocks = 40;
  RowOrder order = RowOrder::kNhd;
  int source_pad = 0;  // elements between the rows of key, of value (twice) and of q
  bool with_skipped_slots = true;
  uint64_t seed = 1;
};

// Prepares, launches, waits and compares every byte of the caches, scales and q: exact but for
// rotated rows, which may differ by one rounding. "" where all is right, else what went wrong
// first.
std::string check_cache_write(Engine& engine, const DeviceSession& session,
                              const CacheWriteOptions& options);

}  // namespace pagejit
