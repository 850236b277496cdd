// Writing the keys and values of new tokens into a paged cache (vLLM: reshape_and_cache), for any
// layout, quantised on the way where the cache's type is smaller, with K and q rotated by their
// positions where asked for. Thread-safety: structs are plain values; a handle may be used from
// any number of threads at once.
#pragma once

#include "pagejit/c/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// How a quantised cache is scaled: value = code * scale.
enum pagejit_kv_scale {
  PAGEJIT_KV_SCALE_NONE = 0,    // not quantised: kv_dtype equals dtype
  PAGEJIT_KV_SCALE_TENSOR = 1,  // one factor for K, one for V, given
  PAGEJIT_KV_SCALE_HEAD = 2,    // one per KV head, given
  // One per token and KV head, found from the row's greatest magnitude and written.
  PAGEJIT_KV_SCALE_TOKEN_HEAD = 3,
};

// Which elements of a row turn together: i and i + rotary_dim / 2, or 2 i and 2 i + 1.
enum pagejit_rope_style {
  PAGEJIT_ROPE_NONE = 0,
  PAGEJIT_ROPE_NEOX = 1,
  PAGEJIT_ROPE_INTERLEAVED = 2,
};

// Bytes of device memory, aligned to 16, that a debug kernel of the cache operations reports to.
#define PAGEJIT_DEBUG_REPORT_BYTES 64

typedef struct pagejit_cache_write_spec {
  size_t struct_size;
  int32_t dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; of key, value and q: f16, bf16 or f32
  // Of the caches: dtype, an 8-bit float, int8 or int4.
  int32_t kv_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*
  // PAGEJIT_KV_SCALE_NONE where kv_dtype is dtype; int8 and int4 only with
  // PAGEJIT_KV_SCALE_TOKEN_HEAD.
  int32_t scale;   // PAGEJIT_KV_SCALE_*
  int32_t layout;  // PAGEJIT_KV_LAYOUT_*; int4 only with PAGEJIT_KV_LAYOUT_ROWS
  // Elements per head of K and q, and of V unless head_size_v says otherwise: [1, 4096]; with
  // PAGEJIT_KV_LAYOUT_VLLM a multiple of 16 bytes of kv_dtype, with int4 even.
  int32_t head_size;    // = 128
  int32_t head_size_v;  // elements per head of V: 0 or head_size for the same; with int4 even
  int32_t block_size;   // = 16; tokens per KV block: [1, 65536]
  int32_t rope;         // PAGEJIT_ROPE_*
  // With a rope: even, [2, head_size], with int4 and PAGEJIT_ROPE_NEOX a multiple of 4; else 0.
  int32_t rotary_dim;
  // = PAGEJIT_DTYPE_F32; PAGEJIT_DTYPE_*; f16, bf16 or f32; f32 where there is no rope
  int32_t cos_sin_dtype;
  // What all pointers and strides of key, value, q and the caches are multiples of, in bytes: 1,
  // 2, 4, 8 or 16. Less makes narrower accesses. With int4 at least two elements of dtype: what
  // these become, a byte or more, is what the caches are aligned to.
  int32_t row_alignment;  // = 16
  // Check every slot and position on the device, report the first bad one of each.
  int32_t debug;     // 0 or 1
  int32_t pdl;       // 0 or 1; programmatic dependent launch, as in pagejit_kernel_spec
  int32_t reserved;  // 0
} pagejit_cache_write_spec;

// Device pointers; strides count elements of their own tensor, int4 too. The rows of key, value and
// q are contiguous.
typedef struct pagejit_cache_write_args {
  size_t struct_size;
  // [num_tokens, num_kv_heads, head_size], of value head_size_v. They are not changed: a rotated
  // K is only in the cache.
  const void* key;
  const void* value;
  int64_t key_stride_token;
  int64_t key_stride_head;
  int64_t value_stride_token;
  int64_t value_stride_head;

  // Where the layout is PAGEJIT_KV_LAYOUT_VLLM, only the strides of block and head are used.
  void* k_cache;
  void* v_cache;
  pagejit_kv_strides k_strides;
  pagejit_kv_strides v_strides;

  // int64 [num_tokens]: block * block_size + token of the block; negative: the token has no slot
  // and is not written. Two tokens must not have one slot. num_tokens is the length of this
  // array; key and value may have more rows.
  const int64_t* slot_mapping;
  int32_t num_tokens;  // 0 launches nothing
  int32_t num_kv_heads;

  // f32: [1] where the scale is PAGEJIT_KV_SCALE_TENSOR, [num_kv_heads] where it is
  // PAGEJIT_KV_SCALE_HEAD, both read and not 0; where it is PAGEJIT_KV_SCALE_TOKEN_HEAD
  // [num_blocks, block_size, num_kv_heads], written. A row of zeros gets scale 1. A value beyond
  // the type's range becomes its greatest, NaN stays NaN (0 in int8 and int4).
  float* k_scale;
  float* v_scale;

  // Where there is a rope: K and q are rotated in f32 and rounded to dtype, K before it is
  // quantised. q [num_tokens, num_q_heads, head_size], rotated in place, for tokens without a
  // slot as well. Null: there is none.
  void* q;
  int64_t q_stride_token;
  int64_t q_stride_head;
  int32_t num_q_heads;
  int32_t reserved;          // 0
  const int64_t* positions;  // int64 [num_tokens], in [0, max_position)
  // [max_position, rotary_dim]: rotary_dim / 2 cosines, then as many sines. 16-byte aligned.
  const void* cos_sin;

  // Where the spec has debug: what slots and positions are checked against, and
  // PAGEJIT_DEBUG_REPORT_BYTES to report to, initialised by init_debug_report().
  int64_t num_blocks;
  int64_t max_position;
  void* debug_report;
} pagejit_cache_write_args;

typedef struct pagejit_cache_write_kernel pagejit_cache_write_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_cache_write_spec_init(pagejit_cache_write_spec* spec,
                                                         size_t struct_size);
PAGEJIT_API pagejit_status pagejit_cache_write_args_init(pagejit_cache_write_args* args,
                                                         size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_cache_write_spec_validate(const pagejit_cache_write_spec* spec,
                                                             pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_spec_supports(const pagejit_cache_write_spec* spec,
                                                             const pagejit_target* target,
                                                             pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_cache_write_spec_canonical_text(const pagejit_cache_write_spec* spec, char* buffer,
                                        size_t buffer_size, size_t* length, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_prepare(pagejit_engine* engine,
                                                              const pagejit_cache_write_spec* spec,
                                                              int32_t device, pagejit_stream stream,
                                                              pagejit_cache_write_kernel** kernel,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_cache_write_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_wait(const pagejit_pending* pending,
                                                           pagejit_cache_write_kernel** kernel,
                                                           pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_precompile(
    pagejit_engine* engine, const pagejit_cache_write_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_render(const pagejit_engine* engine,
                                                             const pagejit_cache_write_spec* spec,
                                                             const pagejit_target* target,
                                                             char* buffer, size_t buffer_size,
                                                             size_t* length, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_copy(const pagejit_cache_write_kernel* kernel,
                                                           pagejit_cache_write_kernel** copy,
                                                           pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_destroy(pagejit_cache_write_kernel* kernel,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_get_info(
    const pagejit_cache_write_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_get_spec(
    const pagejit_cache_write_kernel* kernel, pagejit_cache_write_spec* spec, pagejit_error* error);

// Elements per head of V.
PAGEJIT_API pagejit_status pagejit_cache_write_spec_value_head_size(
    const pagejit_cache_write_spec* spec, int32_t* head_size_v, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_cache_write_kernel_launch(
    const pagejit_cache_write_kernel* kernel, const pagejit_cache_write_args* args,
    pagejit_stream stream, pagejit_error* error);
// The report: PAGEJIT_DEBUG_REPORT_BYTES of device memory. The first enqueues its initialisation;
// the second synchronises `stream` and reads what debug kernels found: OK, or DEVICE_CHECK_FAILED
// with the lowest token that has a bad slot, or else a bad position. The report is cleared.
// INVALID_ARGUMENT (it is null or not 16-byte aligned), DRIVER_ERROR.
PAGEJIT_API pagejit_status
pagejit_cache_write_kernel_init_debug_report(const pagejit_cache_write_kernel* kernel, void* report,
                                             pagejit_stream stream, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_cache_write_kernel_read_debug_report(const pagejit_cache_write_kernel* kernel, void* report,
                                             pagejit_stream stream, pagejit_error* error);

#ifdef __cplusplus
}
#endif
