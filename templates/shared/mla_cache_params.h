// What host and device agree on for the kernel that writes the latent cache of MLA: its
// configuration (compile time) and its parameters (launch). Plain C++20 without includes but its
// neighbours.
#pragma once

#include "templates/shared/cache_write_params.h"

namespace pagejit_shared {

// The same numbers as pagejit::MlaFormat.
enum class MlaFormat : int {
  kPlain,  // [kv_c | k_pe] as given
  kE4m3,   // the same as codes, with one factor
  kDsMla,  // codes of kv_c, their scales, bf16 of k_pe: rows of KvLayout::kDsMla
};

// kv_c is written in parts of a kDsMlaGroup, the last of which may be shorter; k_pe and each head of
// q_pe are one. A group of threads_per_row threads, a power of two and at most a warp, does a part
// in vectors; a CTA does rows_per_cta() parts of one token.
struct MlaCacheWriteConfig {
  Element dtype;    // kv_c, k_pe and q_pe
  Element kv;       // of kv_c in the cache
  Element cos_sin;  // where there is a rotation
  MlaFormat format;
  RopeStyle rope;
  int kv_lora_rank;
  int rotary_dim;  // elements of k_pe and q_pe, whether they are rotated or not
  int block_size;
  int vector_elements;
  int threads_per_row;
  int num_threads;
  bool grouped;
  bool has_float8_convert;  // the target has instructions for it
  bool debug;
};

PAGEJIT_HOST_DEVICE constexpr int rows_per_cta(const MlaCacheWriteConfig& c) {
  return c.num_threads / c.threads_per_row;
}
// Parts of a token's kv_c.
PAGEJIT_HOST_DEVICE constexpr int latent_parts(const MlaCacheWriteConfig& c) {
  return (c.kv_lora_rank + kDsMlaGroup - 1) / kDsMlaGroup;
}
// With that of its k_pe.
PAGEJIT_HOST_DEVICE constexpr int cached_parts(const MlaCacheWriteConfig& c) {
  return latent_parts(c) + (c.rotary_dim > 0 ? 1 : 0);
}

// Kinds of faults: those of CacheWriteFault, by token, or by layer * num_tokens + token.

// Strides count elements; of kDsMla bytes.
struct MlaCacheWriteParams {
  const void* kv_c;
  const void* k_pe;
  void* cache;
  void* const* caches;            // [num_layers] in its place where kernels are grouped
  const long long* slot_mapping;  // [num_tokens]; negative: the token is not written
  const float* scale;             // kE4m3: [1], [num_layers] where kernels are grouped
  void* q_pe;                     // rotated in place where there is a rotation
  const long long* positions;
  const void* cos_sin;  // [max_position, rotary_dim]: cosines, then sines
  DebugReport* report;
  long long kv_c_stride_token, k_pe_stride_token;
  long long cache_stride_block, cache_stride_token;
  long long kv_c_stride_layer, k_pe_stride_layer, slot_stride_layer;  // grouped kernels
  long long q_pe_stride_token, q_pe_stride_head;
  long long num_blocks;    // debug kernels
  long long max_position;  // debug kernels
  int num_q_heads;         // 0 where there is no q_pe
  int num_tokens;
};

// Grid: x = token, y = rows_per_cta() of its parts: kv_c, k_pe, q_pe of each head; z =
// layer where kernels are grouped.

}  // namespace pagejit_shared
