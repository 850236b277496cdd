// The latent cache of multi-head latent attention (MLA): one row a token for all heads, [kv_c |
// k_pe], in vLLM's formats. Writing it (vLLM: concat_and_cache_mla), with k_pe and q_pe rotated
// where asked for, or for many layers in one launch. Thread-safety: structs are plain values; a
// handle may be used from any number of threads at once.
#pragma once

#include "pagejit/c/cache_write.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a row of the latent cache is.
enum pagejit_mla_format {
  PAGEJIT_MLA_FORMAT_PLAIN = 0,  // elements as they are given (vLLM: auto)
  PAGEJIT_MLA_FORMAT_E4M3 =
      1,  // e4m3 codes and one scale for all rows: value = code * scale (vLLM: fp8)
  // 656 bytes (vLLM: fp8_ds_mla, FlashMLA): 512 e4m3 codes of kv_c; four f32 scales, one for 128
  // codes each, scale = max(greatest magnitude / 448, FLT_MIN), value = code * scale; 64 bf16 of
  // k_pe.
  PAGEJIT_MLA_FORMAT_DS_MLA = 2,
};

typedef struct pagejit_mla_cache_write_spec {
  size_t struct_size;
  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; of kv_c, k_pe and q_pe: f16, bf16 or f32
  int32_t dtype;
  // PAGEJIT_MLA_FORMAT_DS_MLA: a dtype of 16 bits, kv_lora_rank 512, qk_rope_head_dim 64.
  int32_t format;            // PAGEJIT_MLA_FORMAT_*
  int32_t kv_lora_rank;      // = 512; elements of kv_c: [1, 4096]
  int32_t qk_rope_head_dim;  // = 64; elements of k_pe: [0, 4096]; 0: there is no k_pe
  int32_t block_size;        // = 64; tokens per KV block: [1, 65536]
  // All elements of k_pe and q_pe turn: their number is even and not 0. PAGEJIT_ROPE_INTERLEAVED:
  // kv_lora_rank is even, too.
  int32_t rope;  // PAGEJIT_ROPE_*
  // = PAGEJIT_DTYPE_F32; PAGEJIT_DTYPE_*; f16, bf16 or f32; f32 where there is no rope
  int32_t cos_sin_dtype;
  int32_t grouped;  // 0 or 1; many layers, each with a cache of its own; without a rope
  // What all pointers and strides of kv_c, k_pe, q_pe and the cache are multiples of, in bytes:
  // 1, 2, 4, 8 or 16, an element of dtype or more; with PAGEJIT_MLA_FORMAT_DS_MLA at least 4,
  // with PAGEJIT_MLA_FORMAT_E4M3 half as much suffices for the cache, a quarter where dtype is
  // f32. Less makes narrower accesses.
  int32_t row_alignment;  // = 16
  // Check every slot and position on the device, report the first bad one of each.
  int32_t debug;     // 0 or 1
  int32_t pdl;       // 0 or 1; programmatic dependent launch, as in pagejit_kernel_spec
  int32_t reserved;  // 0
} pagejit_mla_cache_write_spec;

// Device pointers; strides count elements of their own tensor. Rows are contiguous.
typedef struct pagejit_mla_cache_write_args {
  size_t struct_size;
  // [num_tokens, kv_lora_rank] and [num_tokens, qk_rope_head_dim], in front of them num_layers
  // where the spec is grouped. They are not changed: a rotated k_pe is only in the cache (vLLM's
  // fused form rotates it in place as well). k_pe is not read where qk_rope_head_dim is 0.
  const void* kv_c;
  const void* k_pe;
  int64_t kv_c_stride_token;
  int64_t k_pe_stride_token;

  // [num_blocks, block_size, row]: of dtype with PAGEJIT_MLA_FORMAT_PLAIN, e4m3 with
  // PAGEJIT_MLA_FORMAT_E4M3, bytes with PAGEJIT_MLA_FORMAT_DS_MLA; the row is kv_lora_rank +
  // qk_rope_head_dim elements, or PAGEJIT_DS_MLA_ROW_BYTES.
  void* cache;
  int64_t cache_stride_block;
  int64_t cache_stride_token;

  // int64 [num_tokens]: as in pagejit_cache_write_args. num_tokens is the length of this array;
  // kv_c and k_pe may have more rows.
  const int64_t* slot_mapping;
  int32_t num_tokens;  // 0 launches nothing
  int32_t reserved;    // 0

  // Where the spec is grouped: device array of num_layers device pointers, each as `cache`, which
  // is then not used; and the strides of layers. Each layer has slots of its own.
  void* const* caches;
  int32_t num_layers;  // at most 65,535, times num_tokens below 2^31; 0 launches nothing
  int32_t reserved1;   // 0
  int64_t kv_c_stride_layer;
  int64_t k_pe_stride_layer;
  int64_t slot_mapping_stride_layer;

  // Where the format is PAGEJIT_MLA_FORMAT_E4M3: f32 [1], or [num_layers] where the spec is
  // grouped, not 0. A value beyond the type's range becomes its greatest, NaN stays NaN. In
  // PAGEJIT_MLA_FORMAT_DS_MLA, NaN does not count for the scale of its 128 elements; infinity
  // does, and leaves nothing of them but zeros and NaN.
  const float* scale;

  // Where there is a rope: k_pe and q_pe are rotated in f32 and rounded to dtype, k_pe before it
  // is quantised. q_pe [num_tokens, num_q_heads, qk_rope_head_dim], rotated in place, for tokens
  // without a slot as well. Null: there is none.
  void* q_pe;
  int64_t q_pe_stride_token;
  int64_t q_pe_stride_head;
  int32_t num_q_heads;
  int32_t reserved2;         // 0
  const int64_t* positions;  // int64 [num_tokens], in [0, max_position)
  // [max_position, qk_rope_head_dim]: half of them cosines, then as many sines. 16-byte aligned.
  const void* cos_sin;

  // Where the spec has debug, as in pagejit_cache_write_args.
  int64_t num_blocks;
  int64_t max_position;
  void* debug_report;
} pagejit_mla_cache_write_args;

typedef struct pagejit_mla_cache_write_kernel pagejit_mla_cache_write_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_mla_cache_write_spec_init(pagejit_mla_cache_write_spec* spec,
                                                             size_t struct_size);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_args_init(pagejit_mla_cache_write_args* args,
                                                             size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_mla_cache_write_spec_validate(
    const pagejit_mla_cache_write_spec* spec, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_spec_supports(
    const pagejit_mla_cache_write_spec* spec, const pagejit_target* target, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_spec_canonical_text(
    const pagejit_mla_cache_write_spec* spec, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_prepare(
    pagejit_engine* engine, const pagejit_mla_cache_write_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_mla_cache_write_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_mla_cache_write_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_wait(
    const pagejit_pending* pending, pagejit_mla_cache_write_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_precompile(
    pagejit_engine* engine, const pagejit_mla_cache_write_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_render(
    const pagejit_engine* engine, const pagejit_mla_cache_write_spec* spec,
    const pagejit_target* target, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_mla_cache_write_kernel_copy(const pagejit_mla_cache_write_kernel* kernel,
                                    pagejit_mla_cache_write_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_destroy(
    pagejit_mla_cache_write_kernel* kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_get_info(
    const pagejit_mla_cache_write_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_mla_cache_write_kernel_get_spec(const pagejit_mla_cache_write_kernel* kernel,
                                        pagejit_mla_cache_write_spec* spec, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_launch(
    const pagejit_mla_cache_write_kernel* kernel, const pagejit_mla_cache_write_args* args,
    pagejit_stream stream, pagejit_error* error);
// As those of a pagejit_cache_write_kernel. Where the spec is grouped, the lowest bad slot is that
// of the first layer that has one.
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_init_debug_report(
    const pagejit_mla_cache_write_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_mla_cache_write_kernel_read_debug_report(
    const pagejit_mla_cache_write_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);

#ifdef __cplusplus
}
#endif
