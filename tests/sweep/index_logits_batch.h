// Logits of an indexer on random data, compared with sums in double precision. Prepares, launches,
// waits and compares: "" where all is right, else what went wrong first. NaN is in all that no row
// has, and absurd ids are in unused places of the block table. Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct IndexLogitsOptions {
  IndexLogitsSpec spec;
  // Pages: of each sequence. Contiguous keys: how many columns each row has.
  std::vector<int> lengths = {0, 1, 63, 64, 65, 130};
  int next_n = 1;               // with pages
  bool lengths_by_row = false;  // with pages: ends of rows instead of lengths of sequences
  int num_keys = 200;           // contiguous keys
  int last_begin = 0;           // rows begin at any key up to this one; with pages lengths_by_row
  int column_begin = 0;
  int num_columns = 0;  // 0: to the end of the longest row
  int64_t page_gap = 0;
  uint64_t seed = 1;
};
std::string check_index_logits(Engine& engine, const DeviceSession& session,
                               const IndexLogitsOptions& options);

}  // namespace pagejit
