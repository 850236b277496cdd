// What host and device agree on for the kernels that copy, gather and convert caches: their
// configurations (compile time) and their parameters (launch). Plain C++20 without includes but its
// neighbours.
#pragma once

#include "templates/shared/mla_cache_params.h"

namespace pagejit_shared {

// ---- Copies of blocks ----

// A thread moves copies_per_thread vectors, all loads before the stores.
struct CopyBlocksConfig {
  int vector_bytes;
  int copies_per_thread;
  int num_threads;
  bool debug;
};
// Bytes of a block that one CTA copies.
PAGEJIT_HOST_DEVICE constexpr int part_bytes(const CopyBlocksConfig& c) {
  return c.vector_bytes * c.copies_per_thread * c.num_threads;
}

// Kinds of faults, by pair.
enum CopyBlocksFault : int {
  kBadSourceBlock = 0,  // value: the block, not in [0, num_blocks)
  kBadTargetBlock = 1,
  kOverlap = 2,  // value: the target, which is another pair's target, or a source
};

struct CopyBlocksParams {
  void* const* caches;     // [num_caches]
  const long long* pairs;  // [num_pairs, 2]: from block, to block
  DebugReport* report;
  long long block_bytes;
  long long block_stride_bytes;
  long long num_blocks;  // debug kernels
  int num_pairs;
};
// Grid: x = pair, y = cache, z = part of the block.

// ---- Gathering ----

// As CacheWriteConfig, the other way round.
struct GatherCacheConfig {
  Element kv;
  Element out;
  KvScale scale;
  KvLayout layout;  // kDsMla: only K
  int head_size;    // of K
  int head_size_v;  // of V
  int block_size;
  int vector_elements;
  int threads_per_row;
  int num_threads;
  bool debug;
};
PAGEJIT_HOST_DEVICE constexpr int rows_per_cta(const GatherCacheConfig& c) {
  return c.num_threads / c.threads_per_row;
}

// Kinds of faults, by token of the result.
enum GatherCacheFault : int {
  kBadTableBlock = 0,  // value: the block, not in [0, num_blocks)
};

// Strides count elements.
struct GatherCacheParams {
  const void* k_cache;
  const void* v_cache;  // null: only K
  void* k_out;
  void* v_out;
  const int* block_table;
  const int* cu_seq_lens;  // [num_seqs + 1]
  const int* seq_starts;   // [num_seqs]; null: all 0
  const float* k_scale;
  const float* v_scale;
  DebugReport* report;
  long long block_table_stride;
  long long k_stride_block, k_stride_token, k_stride_head;
  long long v_stride_block, v_stride_token, v_stride_head;
  long long k_out_stride_token, k_out_stride_head;
  long long v_out_stride_token, v_out_stride_head;
  long long num_blocks;  // debug kernels
  int num_seqs;
  int num_kv_heads;
  int tokens_per_cta;  // 1, or as many as have all of their rows in a CTA
};
// Grid: x = tokens_per_cta tokens of the result, y = rows_per_cta() of a token's rows: K of each
// head, V of each head.

// ---- Conversion to and from 8-bit floats ----

struct ConvertFloat8Config {
  Element from;
  Element to;
  int vector_elements;
  int num_threads;
  bool has_float8_convert;
};
struct ConvertFloat8Params {
  const void* from;
  void* to;
  long long count;  // elements, a multiple of vector_elements
  float scale;
};
// Grid: x = num_threads vectors.

}  // namespace pagejit_shared
