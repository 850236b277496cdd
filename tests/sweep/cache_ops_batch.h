// Copies of blocks, gathering and conversion on random caches, compared bit for bit with plain
// loops. Each function prepares, launches, waits and compares: "" where all is right, else what
// went wrong first. Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct CopyOptions {
  CopyBlocksSpec spec = {};
  int num_caches = 3;
  int64_t block_bytes = 4096;
  int64_t gap_bytes = 0;  // between blocks
  int64_t num_blocks = 40;
  int num_pairs = 9;
};
std::string check_copy_blocks(Engine& engine, const DeviceSession& session,
                              const CopyOptions& options);

struct GatherOptions {
  GatherCacheSpec spec;
  std::vector<int> seq_lens = {5, 0, 37, 1, 64};
  bool with_starts = true;
  bool with_values = true;
  bool heads_first = false;  // HND
  int num_kv_heads = 3;
  int64_t num_blocks = 50;
  int unused_tokens = 4;  // of the grid and the result, behind the last sequence
};
std::string check_gather_cache(Engine& engine, const DeviceSession& session,
                               const GatherOptions& options);

// All codes of the smaller type, and values of all sizes.
std::string check_convert_float8(Engine& engine, const DeviceSession& session,
                                 const ConvertFloat8Spec& spec, float scale);

}  // namespace pagejit
