// Index keys written into pages and gathered from them, on random data, compared byte by byte with
// plain loops over the format as vLLM has it. Each function prepares, launches, waits and compares:
// "" where all is right, else what went wrong first. Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct IndexWriteOptions {
  IndexKeyWriteSpec spec;
  int num_tokens = 42;
  int unused_tokens = 3;  // rows of k behind slot_mapping's length
  int64_t num_blocks = 12;
  int source_pad = 0;    // elements between the rows of k
  int64_t page_gap = 0;  // bytes between pages
  uint64_t seed = 1;
};
std::string check_index_key_write(Engine& engine, const DeviceSession& session,
                                  const IndexWriteOptions& options);

struct IndexGatherOptions {
  IndexKeyGatherSpec spec;
  std::vector<int> seq_lens = {5, 0, 1, 63, 64, 65, 0};
  bool with_starts = false;
  int64_t num_blocks = 90;
  int64_t page_gap = 0;
  int unused_tokens = 4;  // of the grid and the result, behind the last sequence
};
std::string check_index_key_gather(Engine& engine, const DeviceSession& session,
                                   const IndexGatherOptions& options);

}  // namespace pagejit
