// Writes of latent caches compared byte by byte with rows that are laid out by plain loops from the
// text of their formats. Thread-safety: plain values, free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "pagejit/mla_cache.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct MlaWriteOptions {
  MlaCacheWriteSpec spec;
  int num_tokens = 42;
  int unused_tokens = 3;  // rows of kv_c and k_pe behind slot_mapping's length
  int num_q_heads = 0;
  int64_t num_blocks = 8;
  int source_pad = 0;  // elements between the rows of kv_c (twice), of k_pe and of q_pe
  int cache_pad = 0;   // elements between the cache's rows, and as many between its blocks
  int num_layers = 0;  // where the spec is grouped: each with values, slots and a cache of its own
  // Groups of zeros, NaN, infinities, and values beyond all ranges.
  bool with_extremes = false;
  uint64_t seed = 1;
};

// Prepares, launches, waits and compares every byte of the cache and of q_pe: exact but for rotated
// rows, which may differ by one rounding. "" where all is right, else what went wrong first.
std::string check_mla_cache_write(Engine& engine, const DeviceSession& session,
                                  const MlaWriteOptions& options);

}  // namespace pagejit
