// The latent cache of multi-head latent attention (MLA): one row a token for all heads, [kv_c |
// k_pe], in vLLM's formats. Writing it (vLLM: concat_and_cache_mla), with k_pe and q_pe rotated by
// their positions where asked for (concat_and_cache_mla_rope_fused), or for many layers in one
// launch (concat_and_cache_mla_grouped). Its rows are gathered by GatherCacheSpec, its blocks
// copied by CopyBlocksSpec and moved by Engine::swap_blocks(), all in cache_ops.h. Thread-safety:
// specs and arguments are plain values; a handle may be launched from any number of threads at
// once.
#pragma once

#include <cstdint>
#include <string>

#include "pagejit/cache_write.h"
#include "pagejit/export.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/spec.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

class MlaCacheWriteKernel;

// What a row of the latent cache is.
enum class MlaFormat : uint8_t {
  kPlain = 0,  // elements as they are given (vLLM: auto)
  kE4m3 = 1,   // e4m3 codes and one scale for all rows: value = code * scale (vLLM: fp8)
  // 656 bytes (vLLM: fp8_ds_mla, FlashMLA): 512 e4m3 codes of kv_c; four f32 scales, one for 128
  // codes each, scale = max(greatest magnitude / 448, FLT_MIN), value = code * scale; 64 bf16 of
  // k_pe.
  kDsMla = 2,
};

// Only what changes the code.
struct PAGEJIT_EXPORT MlaCacheWriteSpec {
  using Handle = MlaCacheWriteKernel;

  DataType dtype = DataType::kBFloat16;  // of kv_c, k_pe and q_pe: f16, bf16 or f32
  // kDsMla: a dtype of 16 bits, kv_lora_rank 512, qk_rope_head_dim 64.
  MlaFormat format = MlaFormat::kPlain;
  int kv_lora_rank = 512;     // elements of kv_c: [1, 4096]
  int qk_rope_head_dim = 64;  // elements of k_pe: [0, 4096]; 0: there is no k_pe
  int block_size = 64;        // tokens per KV block: [1, 65536]
  // All elements of k_pe and q_pe turn: their number is even and not 0. kInterleaved: kv_lora_rank
  // is even, too.
  RopeStyle rope = RopeStyle::kNone;
  DataType cos_sin_dtype = DataType::kFloat32;  // f16, bf16 or f32; f32 where there is no rope
  bool grouped = false;  // many layers, each with a cache of its own; without a rope
  // What all pointers and strides of kv_c, k_pe, q_pe and the cache are multiples of, in bytes: 1,
  // 2, 4, 8 or 16, an element of dtype or more; with kDsMla at least 4, with kE4m3 half as much
  // suffices for the cache, a quarter where dtype is f32. Less makes narrower accesses.
  int row_alignment = 16;
  // Check every slot and position on the device, report the first bad one of each.
  bool debug = false;
  bool pdl = false;  // programmatic dependent launch, as in KernelSpec

  bool operator==(const MlaCacheWriteSpec&) const = default;
};

// The canonical text is e.g. "mla_cache_write dtype=bf16 format=fp8_ds_mla kv_lora_rank=512
// qk_rope_head_dim=64 block_size=64"; rope=neox (or interleaved), cos_sin, grouped, row_alignment,
// debug and pdl follow where they are not the default.
template <>
PAGEJIT_EXPORT Status validate(const MlaCacheWriteSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const MlaCacheWriteSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const MlaCacheWriteSpec& spec);

// Device pointers; strides count elements of their own tensor. Rows are contiguous.
struct MlaCacheWriteArgs {
  // [num_tokens, kv_lora_rank] and [num_tokens, qk_rope_head_dim], in front of them num_layers
  // where the spec is grouped. They are not changed: a rotated k_pe is only in the cache (vLLM's
  // fused form rotates it in place as well). k_pe is not read where qk_rope_head_dim is 0.
  const void* kv_c = nullptr;
  const void* k_pe = nullptr;
  int64_t kv_c_stride_token = 0;
  int64_t k_pe_stride_token = 0;

  // [num_blocks, block_size, row]: of dtype with kPlain, e4m3 with kE4m3, bytes with kDsMla; the
  // row is kv_lora_rank + qk_rope_head_dim elements, or kDsMlaRowBytes.
  void* cache = nullptr;
  int64_t cache_stride_block = 0;
  int64_t cache_stride_token = 0;

  // int64 [num_tokens]: as in CacheWriteArgs. num_tokens is the length of this array; kv_c and k_pe
  // may have more rows.
  const int64_t* slot_mapping = nullptr;
  int32_t num_tokens = 0;  // 0 launches nothing

  // Where the spec is grouped: device array of num_layers device pointers, each as `cache`, which
  // is then not used; and the strides of layers. Each layer has slots of its own.
  void* const* caches = nullptr;
  int32_t num_layers = 0;  // at most 65,535, times num_tokens below 2^31; 0 launches nothing
  int64_t kv_c_stride_layer = 0;
  int64_t k_pe_stride_layer = 0;
  int64_t slot_mapping_stride_layer = 0;

  // Where the format is kE4m3: f32 [1], or [num_layers] where the spec is grouped, not 0. A value
  // beyond the type's range becomes its greatest, NaN stays NaN. In kDsMla, NaN does not count for
  // the scale of its 128 elements; infinity does, and leaves nothing of them but zeros and NaN.
  const float* scale = nullptr;

  // Where there is a rope: k_pe and q_pe are rotated in f32 and rounded to dtype, k_pe before it is
  // quantised.
  // q_pe [num_tokens, num_q_heads, qk_rope_head_dim], rotated in place, for tokens without a slot
  // as well. Null: there is none.
  void* q_pe = nullptr;
  int64_t q_pe_stride_token = 0;
  int64_t q_pe_stride_head = 0;
  int32_t num_q_heads = 0;
  const int64_t* positions = nullptr;  // int64 [num_tokens], in [0, max_position)
  // [max_position, qk_rope_head_dim]: half of them cosines, then as many sines. 16-byte aligned.
  const void* cos_sin = nullptr;

  // Where the spec has debug, as in CacheWriteArgs.
  int64_t num_blocks = 0;
  int64_t max_position = 0;
  void* debug_report = nullptr;
};

// A launchable write of a latent cache on one device, made by Engine::prepare().
class PAGEJIT_EXPORT MlaCacheWriteKernel : public KernelHandle {
 public:
  // Enqueues one launch on `stream`. Never allocates, locks or reads device memory on success; safe
  // during stream capture. kInvalidArgument, kDriverError.
  Status launch(const MlaCacheWriteArgs& args, Stream stream) const;

  // As those of a CacheWriteKernel. Where the spec is grouped, the lowest bad slot is that of the
  // first layer that has one.
  Status init_debug_report(void* report, Stream stream) const;
  Status read_debug_report(void* report, Stream stream) const;

  // Of an empty handle: default values.
  const MlaCacheWriteSpec& spec() const;
};

}  // namespace pagejit
