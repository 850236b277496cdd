// What host and device agree on for the workspace of attention kernels. Plain C++20.
//
// header | counters (fixed offset, fixed capacity) | partial results of rows
//
// Contract: counters are zero before the first launch (workspace_init) and reset themselves; they
// lie at a fixed offset with a fixed capacity, so that no other batch size or spec ever puts
// partials where they are; a sequence that is not split does not touch them; one workspace serves
// one stream at a time.
#pragma once

#include "templates/shared/elements.h"

namespace pagejit_shared {

// Rows of a merge unit: (sequence, KV head, up to this many rows). Splits are merged unit by unit,
// so that many splits of many heads do not all end on one SM.
constexpr int kMergeUnitRows = 16;

// One counter per merge unit. 65,536 counters (256 KiB): more units than that keep every GPU busy
// without splitting, so they are never split.
constexpr int kMergeCounterCapacity = 65536;
constexpr unsigned kWorkspaceMagic = 0x504a5753u;  // "PJWS"

// What a debug kernel found first. code 0 = nothing.
enum DebugCode : int {
  kDebugOk = 0,
  kDebugBadBlockId =
      1,  // value = the block id; position = index into the sequence's block table row
  kDebugBadSeqLen = 2,      // value = the length (negative, or beyond the block table)
  kDebugBadWorkspace = 3,   // value = the magic word found
  kDebugBadCounter = 4,     // value = the counter found; position = unit
  kDebugBadQueryRange = 5,  // value = query_start_loc[position], less than the one before or beyond
                            // the query tokens; position = seq_idx + 1
  kDebugBadKvIndptr = 6,    // value = kv_indptr[position], negative or less than the one before
  kDebugBadLastBlockLen = 7,  // value = the tokens of the last block: not in [1, block_size]
  kDebugBadListEntry = 9,     // value = the list's entry at this position, beyond the blocks
  kDebugBadListLen = 10,      // value = the length, negative or beyond max_list_len
  kDebugBadKvStartLoc = 8,    // value = kv_start_loc[position], negative or less than the one before
};

struct WorkspaceHeader {
  unsigned magic;
  int debug_code;  // written once, by the first finder, with an atomic compare-and-swap
  int debug_seq_idx;
  int debug_position;
  long long debug_value;
  int reserved[10];  // header fills 64 bytes
};
static_assert(sizeof(WorkspaceHeader) == 64);

constexpr long long kCountersOffset = 256;
constexpr long long kPartialsOffset = kCountersOffset + 4ll * kMergeCounterCapacity;

// What a split has of a row: the greatest score and the sum of the probabilities.
struct PartialStats {
  float row_max;
  float row_sum;
};

// A row's partial result: its PartialStats, then, at a multiple of 32 bytes, f32 accumulators
// [head_size_v], not normalised. Partial results lie by [sequence, KV head, split, row]; where
// splits_row_tiles, "sequence" is a row tile here and below, as it is for the counters; and "KV head"
// is one of group_tiles() of it.
constexpr int kPartialAccOffset = 32;
PAGEJIT_HOST_DEVICE constexpr int partial_row_bytes(int head_size_v) {
  return kPartialAccOffset + head_size_v * 4;
}

PAGEJIT_HOST_DEVICE constexpr int merge_units(int num_rows) {
  return (num_rows + kMergeUnitRows - 1) / kMergeUnitRows;
}

PAGEJIT_HOST_DEVICE constexpr long long workspace_bytes(long long num_seqs, long long num_kv_heads,
                                                        long long num_splits, long long num_rows,
                                                        int head_size_v) {
  return kPartialsOffset +
         num_seqs * num_kv_heads * num_splits * num_rows * partial_row_bytes(head_size_v);
}

}  // namespace pagejit_shared
