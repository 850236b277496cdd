// What host and device agree on for the kernel that writes keys and values into the cache: its
// configuration (compile time) and its parameters (launch). Plain C++20 without includes but its
// neighbours.
#pragma once

#include "templates/shared/debug_report.h"
#include "templates/shared/elements.h"

namespace pagejit_shared {

// The same numbers as pagejit::KvScale and RopeStyle.
enum class KvScale : int {
  kNone,       // stored as given
  kTensor,     // one factor
  kHead,       // one per KV head
  kTokenHead,  // one per token and KV head, found by this kernel
};
enum class RopeStyle : int { kNone, kNeox, kInterleaved };

// A row is what one token has in one head of K, V or q. A group of threads_per_row threads, a power
// of two and at most a warp, does a row in vectors; a CTA does rows_per_cta() rows of one token.
struct CacheWriteConfig {
  Element dtype;    // key, value and q
  Element kv;       // caches
  Element cos_sin;  // where there is a rotation
  KvScale scale;
  KvLayout layout;
  RopeStyle rope;
  int head_size;    // of K and q
  int head_size_v;  // of V
  int rotary_dim;  // elements of K and q that are rotated, from the first on
  int block_size;
  int vector_elements;
  int threads_per_row;
  int num_threads;
  bool has_float8_convert;  // the target has instructions for it
  bool debug;
};

PAGEJIT_HOST_DEVICE constexpr int rows_per_cta(const CacheWriteConfig& c) {
  return c.num_threads / c.threads_per_row;
}
// Elements of one chunk of KvLayout::kVllm.
PAGEJIT_HOST_DEVICE constexpr int chunk_elements(const CacheWriteConfig& c) {
  return 16 / element_bytes(c.kv);
}

// Kinds of faults that debug kernels find, by token.
enum CacheWriteFault : int {
  kBadSlot = 0,      // value: the slot, less than -1 or beyond the cache
  kBadPosition = 1,  // value: the position, not in [0, max_position)
};

// Strides count elements, of int4 too.
struct CacheWriteParams {
  const void* key;
  const void* value;
  void* k_cache;
  void* v_cache;
  const long long* slot_mapping;  // [num_tokens]; negative: the token is not written
  float* k_scale;                 // [1], [num_kv_heads], or written: [slot, num_kv_heads]
  float* v_scale;
  void* q;  // rotated in place where there is a rotation; null: there is none
  const long long* positions;
  const void* cos_sin;  // [max_position, rotary_dim]: cosines, then sines
  DebugReport* report;
  long long key_stride_token, key_stride_head;
  long long value_stride_token, value_stride_head;
  long long k_stride_block, k_stride_token, k_stride_head;
  long long v_stride_block, v_stride_token, v_stride_head;
  long long q_stride_token, q_stride_head;
  long long num_blocks;    // debug kernels
  long long max_position;  // debug kernels
  int num_kv_heads;
  int num_q_heads;  // 0 where q is null
};

// Grid: x = token, y = rows_per_cta() of its rows: K of each head, V of each head, q of each head.

}  // namespace pagejit_shared
