// What host and device agree on for the kernels of a sparse-attention indexer: their configurations
// (compile time) and their parameters (launch). Plain C++20 without includes but its neighbours.
#pragma once

#include "templates/shared/debug_report.h"
#include "templates/shared/elements.h"

namespace pagejit_shared {

// ---- Blocks of index keys ----

// A block: the codes of its tokens, [block_size, head_size], then their scales, [block_size,
// head_size / quant_block_size] of f32.
PAGEJIT_HOST_DEVICE constexpr long long index_scales_offset(int block_size, int head_size) {
  return static_cast<long long>(block_size) * head_size;
}

// ---- Quantising and writing keys ----

// A row is what one token has in one quant block. A group of threads_per_row threads, a power of two
// and at most a warp, does a row in vectors.
struct IndexKeyWriteConfig {
  Element dtype;
  int head_size;
  int quant_block_size;
  int block_size;
  bool is_power_of_two_scale;
  int vector_elements;
  int threads_per_row;
  int num_threads;
  bool has_float8_convert;  // the target has instructions for it
  bool debug;
};

// Kinds of faults, by token.
enum IndexKeyWriteFault : int {
  kBadKeySlot = 0,  // value: the slot, less than -1 or beyond the cache
};

struct IndexKeyWriteParams {
  const void* k;                  // [num_tokens, head_size]
  void* cache;                    // blocks
  const long long* slot_mapping;  // [num_tokens]; negative: the token is not written
  DebugReport* report;
  long long k_stride_token;  // elements
  long long block_stride_bytes;
  long long num_blocks;  // debug kernels
  int num_tokens;
};
// Grid: x = num_threads / threads_per_row rows, those of a token one behind the other.

// ---- Gathering keys ----

// A token's codes are copied by threads_per_token threads, a power of two and at most a warp.
struct IndexKeyGatherConfig {
  int head_size;
  int quant_block_size;
  int block_size;
  int vector_bytes;
  int threads_per_token;
  int num_threads;
  bool debug;
};

// Kinds of faults, by token of the result.
enum IndexKeyGatherFault : int {
  kBadKeyBlock = 0,  // value: the block, not in [0, num_blocks)
};

struct IndexKeyGatherParams {
  const void* cache;
  void* k_out;       // codes [num_tokens, head_size]
  float* scale_out;  // [num_tokens, head_size / quant_block_size]
  const int* block_table;
  const int* cu_seq_lens;  // [num_seqs + 1]
  const int* seq_starts;   // [num_seqs]; null: all 0
  DebugReport* report;
  long long block_stride_bytes;
  long long block_table_stride;
  long long k_out_stride_token;      // bytes
  long long scale_out_stride_token;  // elements
  long long num_blocks;              // debug kernels
  int num_seqs;
};
// Grid: x = num_threads / threads_per_token tokens of the result.

// ---- Which columns of its logits a row has ----

// Row r is query token r % next_n of sequence r / next_n and has [0, seq_lens[r / next_n] - next_n +
// r % next_n + 1) where there are seq_lens, else [row_begins[r], row_ends[r]).
struct RowRanges {
  const int* row_begins;  // [num_rows]; null: all 0
  const int* row_ends;    // [num_rows]
  const int* seq_lens;    // [num_rows / next_n], or null
  int next_n;
};

// Kinds of faults, by row.
enum RowRangeFault : int {
  kBadRowBegin = 0,  // value: the begin, negative
  kBadRowEnd = 1,    // value: the end, beyond the columns
};

// ---- The greatest values of each row ----

// A CTA does a row, or a part of one: then the last to come finds the greatest of what the parts
// have found. Values become numbers of 32 bits in the same order; digit by digit, from the top, a
// CTA counts how many have each digit.
struct TopKConfig {
  int vector_elements;  // of one access
  int num_threads;
  int shared_bytes;  // of TopKShared
  bool debug;
};
// Bits of the digits: the counts of one fit 8 KiB.
constexpr int kTopKDigits = 3;
PAGEJIT_HOST_DEVICE constexpr int top_k_shift(int digit) {
  return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}
constexpr int kTopKBins = 2048;  // of the longest digit
constexpr int kTopKMaxWarps = 32;

struct TopKShared {
  int counts[kTopKBins];  // of values, by digit
  int warp_sums[2][kTopKMaxWarps];
  int chosen_bin;  // the digit of the last value that is taken
  int num_above;   // values with a greater one
  int is_last;     // this CTA is the last of its row
};

// Where rows have several parts: counters, one per row, zero before the first launch and again after
// each; and, for each row, k candidates of each part, which in a TopKKernel's workspace lie here:
constexpr int kTopKMaxSplitRows = 128;
constexpr long long kTopKCandidatesOffset = kTopKMaxSplitRows * sizeof(unsigned);
struct TopKCandidate {
  unsigned key;
  int index;
};
// Into how many parts a row of `length` is divided where the launch has num_splits: each has at
// least twice the values that it finds.
PAGEJIT_HOST_DEVICE constexpr int top_k_parts(int length, int k, int num_splits) {
  const int most = length / 2 / k;
  return most < 1 ? 1 : most < num_splits ? most : num_splits;
}

struct TopKParams {
  const float* logits;  // [num_rows, columns]
  int* indices;         // [num_rows, k]
  RowRanges ranges;
  DebugReport* report;
  unsigned* counters;         // where num_splits > 1
  TopKCandidate* candidates;  // the same
  long long logits_stride;
  long long indices_stride;
  int num_columns;
  int k;
  int num_splits;
};
// Grid: x = row, y = split.

// ---- Logits ----

// A CTA has rows_per_cta rows of a sequence (of all rows where keys are contiguous) and
// columns_per_cta() columns; a warp does them in tiles of token_tiles * 16.
struct IndexLogitsConfig {
  int num_heads;
  int head_size;
  int block_size;    // tokens per block; 0: keys are contiguous
  int vector_bytes;  // of one access to a key
  int token_tiles;
  int tiles_per_warp;
  int rows_per_cta;
  int num_threads;
  int shared_bytes;
  bool cleans;  // columns that a row does not have become -inf
  bool debug;
};
PAGEJIT_HOST_DEVICE constexpr int columns_per_cta(const IndexLogitsConfig& c) {
  return c.num_threads / 32 * c.tiles_per_warp * c.token_tiles * 16;
}

// Beside those of RowRangeFault, which contiguous keys have; by sequence.
constexpr int kBadIndexBlock = 2;  // value: place in the sequence's block table << 32 | block

// Strides of q and k count bytes, the others elements.
struct IndexLogitsParams {
  const void* q;         // [num_rows, num_heads, head_size]
  const float* weights;  // [num_rows, num_heads]
  const void* k;         // [num_keys, head_size], or blocks
  const float* k_scale;  // [num_keys] where keys are contiguous
  const int* block_table;
  float* logits;  // [num_rows, num_columns]
  RowRanges ranges;
  DebugReport* report;
  long long q_stride_row, q_stride_head;
  long long weights_stride;
  long long k_stride;  // of keys, or of blocks
  long long block_table_stride;
  long long logits_stride;
  long long num_blocks;  // debug kernels, keys in blocks
  int num_keys;          // debug kernels, contiguous keys
  int rows_per_seq;
  int column_begin;  // the key of column 0
  int num_columns;
};
// Grid: x = sequence, groups of rows_per_cta of its rows; y = columns_per_cta() columns.

}  // namespace pagejit_shared
