// What an engine does with a paged cache beside attention and writing: copying blocks within the
// caches, gathering sequences into contiguous rows, converting to and from 8-bit floats, and
// moving blocks between device and host. Thread-safety: structs are plain values; a handle may be
// used from any number of threads at once.
#pragma once

#include "pagejit/c/cache_write.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Copying blocks within caches, as copy-on-write needs it ----

typedef struct pagejit_copy_blocks_spec {
  size_t struct_size;
  // What the caches' addresses, block_bytes and block_stride_bytes are multiples of: 1, 2, 4, 8
  // or 16.
  int32_t alignment;  // = 16
  // Check every block and that no copy depends on another's order; report the lowest bad pair and
  // leave such pairs out.
  int32_t debug;  // 0 or 1
} pagejit_copy_blocks_spec;

typedef struct pagejit_copy_blocks_args {
  size_t struct_size;
  // Device array of num_caches device pointers: K and V of every layer, each on its own.
  void* const* caches;
  int32_t num_caches;  // [0, 65535]; 0 launches nothing
  int32_t reserved;    // 0
  // A block is block_bytes in one piece; block i begins at i * block_stride_bytes. A block of a
  // latent cache is block_size rows: block_size * PAGEJIT_DS_MLA_ROW_BYTES bytes with
  // PAGEJIT_MLA_FORMAT_DS_MLA. block_bytes: [1, 65535 * 1024 * the spec's alignment], with 16
  // almost 1 GiB.
  int64_t block_bytes;
  int64_t block_stride_bytes;
  // Device int64 [num_pairs, 2]: from, to. The copies run in any order: no target may be another
  // pair's target, or any pair's source.
  const int64_t* pairs;
  int32_t num_pairs;  // 0 launches nothing
  int32_t reserved1;  // 0

  // Where the spec has debug; debug_report as in pagejit_cache_write_args.
  int64_t num_blocks;
  void* debug_report;
} pagejit_copy_blocks_args;

typedef struct pagejit_copy_blocks_kernel pagejit_copy_blocks_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_copy_blocks_spec_init(pagejit_copy_blocks_spec* spec,
                                                         size_t struct_size);
PAGEJIT_API pagejit_status pagejit_copy_blocks_args_init(pagejit_copy_blocks_args* args,
                                                         size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_copy_blocks_spec_validate(const pagejit_copy_blocks_spec* spec,
                                                             pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_spec_supports(const pagejit_copy_blocks_spec* spec,
                                                             const pagejit_target* target,
                                                             pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_copy_blocks_spec_canonical_text(const pagejit_copy_blocks_spec* spec, char* buffer,
                                        size_t buffer_size, size_t* length, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_prepare(pagejit_engine* engine,
                                                              const pagejit_copy_blocks_spec* spec,
                                                              int32_t device, pagejit_stream stream,
                                                              pagejit_copy_blocks_kernel** kernel,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_copy_blocks_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_wait(const pagejit_pending* pending,
                                                           pagejit_copy_blocks_kernel** kernel,
                                                           pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_precompile(
    pagejit_engine* engine, const pagejit_copy_blocks_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_render(const pagejit_engine* engine,
                                                             const pagejit_copy_blocks_spec* spec,
                                                             const pagejit_target* target,
                                                             char* buffer, size_t buffer_size,
                                                             size_t* length, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_copy(const pagejit_copy_blocks_kernel* kernel,
                                                           pagejit_copy_blocks_kernel** copy,
                                                           pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_destroy(pagejit_copy_blocks_kernel* kernel,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_get_info(
    const pagejit_copy_blocks_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_copy_blocks_kernel_launch(
    const pagejit_copy_blocks_kernel* kernel, const pagejit_copy_blocks_args* args,
    pagejit_stream stream, pagejit_error* error);
// As those of a pagejit_cache_write_kernel.
PAGEJIT_API pagejit_status
pagejit_copy_blocks_kernel_init_debug_report(const pagejit_copy_blocks_kernel* kernel, void* report,
                                             pagejit_stream stream, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_copy_blocks_kernel_read_debug_report(const pagejit_copy_blocks_kernel* kernel, void* report,
                                             pagejit_stream stream, pagejit_error* error);

// ---- Gathering the tokens of sequences into contiguous rows ----

typedef struct pagejit_gather_cache_spec {
  size_t struct_size;
  int32_t kv_dtype;   // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; of the caches: any type
  int32_t out_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; f16, bf16 or f32
  // PAGEJIT_KV_SCALE_*; PAGEJIT_KV_SCALE_NONE unless kv_dtype has 8 bits;
  // PAGEJIT_KV_SCALE_TOKEN_HEAD where it is int4
  int32_t scale;
  // With PAGEJIT_KV_LAYOUT_DS_MLA (vLLM: cp_gather_and_upconvert_fp8_kv_cache) there is no V and
  // one KV head; kv_dtype is fp8_e4m3, scale PAGEJIT_KV_SCALE_NONE, head_size 576, head_size_v 0,
  // row_alignment at least 4. Latent caches of other formats are gathered as K of one head, of
  // head_size kv_lora_rank + qk_rope_head_dim.
  int32_t layout;     // PAGEJIT_KV_LAYOUT_*
  int32_t head_size;  // = 128; as in pagejit_cache_write_spec
  int32_t head_size_v;
  int32_t block_size;  // = 16
  // As in pagejit_cache_write_spec, of the caches and the result; with int4 at least two elements
  // of out_dtype.
  int32_t row_alignment;  // = 16
  int32_t debug;          // 0 or 1; check every block id, report that of the lowest token
  int32_t reserved;       // 0
} pagejit_gather_cache_spec;

// Device pointers; strides count elements of their own tensor.
typedef struct pagejit_gather_cache_args {
  size_t struct_size;
  const void* k_cache;
  const void* v_cache;           // null: only K is gathered
  pagejit_kv_strides k_strides;  // as in pagejit_cache_write_args
  pagejit_kv_strides v_strides;

  // int32 [num_seqs, at least as many blocks as a sequence has], row stride block_table_stride.
  const int32_t* block_table;
  int64_t block_table_stride;
  // int32 [num_seqs + 1], from 0 on, not decreasing: sequence i becomes the rows [cu_seq_lens[i],
  // cu_seq_lens[i + 1]). vLLM's name for a kv_start_loc (attention.h).
  const int32_t* cu_seq_lens;
  // int32 [num_seqs]: the token of the sequence that its first row is. Null: 0 for all.
  const int32_t* seq_starts;
  int32_t num_seqs;  // 0 launches nothing
  // Upper bound of cu_seq_lens[num_seqs]: the grid. 0 launches nothing.
  int32_t num_tokens;
  int32_t num_kv_heads;  // [1, 65535]; 1 with PAGEJIT_KV_LAYOUT_DS_MLA
  int32_t reserved;      // 0

  // f32, as pagejit_cache_write_args says for each kind of scale; value = code * scale.
  const float* k_scale;
  const float* v_scale;

  // [num_tokens, num_kv_heads, head_size], of V head_size_v.
  void* k_out;
  void* v_out;
  int64_t out_stride_token;
  int64_t out_stride_head;
  // Of v_out where head_size_v is not head_size; else both have the strides above.
  int64_t v_out_stride_token;
  int64_t v_out_stride_head;

  // Where the spec has debug; debug_report as in pagejit_cache_write_args.
  int64_t num_blocks;
  void* debug_report;
} pagejit_gather_cache_args;

typedef struct pagejit_gather_cache_kernel pagejit_gather_cache_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_gather_cache_spec_init(pagejit_gather_cache_spec* spec,
                                                          size_t struct_size);
PAGEJIT_API pagejit_status pagejit_gather_cache_args_init(pagejit_gather_cache_args* args,
                                                          size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_gather_cache_spec_validate(const pagejit_gather_cache_spec* spec,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_spec_supports(const pagejit_gather_cache_spec* spec,
                                                              const pagejit_target* target,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_gather_cache_spec_canonical_text(const pagejit_gather_cache_spec* spec, char* buffer,
                                         size_t buffer_size, size_t* length, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_prepare(
    pagejit_engine* engine, const pagejit_gather_cache_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_gather_cache_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_gather_cache_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_wait(const pagejit_pending* pending,
                                                            pagejit_gather_cache_kernel** kernel,
                                                            pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_precompile(
    pagejit_engine* engine, const pagejit_gather_cache_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_render(const pagejit_engine* engine,
                                                              const pagejit_gather_cache_spec* spec,
                                                              const pagejit_target* target,
                                                              char* buffer, size_t buffer_size,
                                                              size_t* length, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_gather_cache_kernel_copy(const pagejit_gather_cache_kernel* kernel,
                                 pagejit_gather_cache_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_destroy(pagejit_gather_cache_kernel* kernel,
                                                               pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_get_info(
    const pagejit_gather_cache_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);

// Elements per head of V.
PAGEJIT_API pagejit_status pagejit_gather_cache_spec_value_head_size(
    const pagejit_gather_cache_spec* spec, int32_t* head_size_v, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_launch(
    const pagejit_gather_cache_kernel* kernel, const pagejit_gather_cache_args* args,
    pagejit_stream stream, pagejit_error* error);
// As those of a pagejit_cache_write_kernel.
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_init_debug_report(
    const pagejit_gather_cache_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_gather_cache_kernel_read_debug_report(
    const pagejit_gather_cache_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);

// ---- Converting to and from 8-bit floats ----

typedef struct pagejit_convert_float8_spec {
  size_t struct_size;
  // One of them an 8-bit float, the other f16, bf16 or f32.
  int32_t from_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*
  int32_t to_dtype;    // = PAGEJIT_DTYPE_FP8_E4M3; PAGEJIT_DTYPE_*
} pagejit_convert_float8_spec;

typedef struct pagejit_convert_float8_args {
  size_t struct_size;
  // Device memory, 16-byte aligned, contiguous.
  const void* from;
  void* to;
  int64_t count;     // elements, a multiple of 4 (8 between 16 and 8 bits); 0 launches nothing
  float scale;       // = 1.0f; code = value / scale, value = code * scale; finite, not 0
  int32_t reserved;  // 0
} pagejit_convert_float8_args;

typedef struct pagejit_convert_float8_kernel pagejit_convert_float8_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_convert_float8_spec_init(pagejit_convert_float8_spec* spec,
                                                            size_t struct_size);
PAGEJIT_API pagejit_status pagejit_convert_float8_args_init(pagejit_convert_float8_args* args,
                                                            size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status
pagejit_convert_float8_spec_validate(const pagejit_convert_float8_spec* spec, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_spec_supports(
    const pagejit_convert_float8_spec* spec, const pagejit_target* target, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_spec_canonical_text(
    const pagejit_convert_float8_spec* spec, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_prepare(
    pagejit_engine* engine, const pagejit_convert_float8_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_convert_float8_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_convert_float8_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_wait(
    const pagejit_pending* pending, pagejit_convert_float8_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_precompile(
    pagejit_engine* engine, const pagejit_convert_float8_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_render(
    const pagejit_engine* engine, const pagejit_convert_float8_spec* spec,
    const pagejit_target* target, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_convert_float8_kernel_copy(const pagejit_convert_float8_kernel* kernel,
                                   pagejit_convert_float8_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_convert_float8_kernel_destroy(pagejit_convert_float8_kernel* kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_get_info(
    const pagejit_convert_float8_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_convert_float8_kernel_launch(
    const pagejit_convert_float8_kernel* kernel, const pagejit_convert_float8_args* args,
    pagejit_stream stream, pagejit_error* error);

// ---- Moving blocks between device and host: no kernel ----

enum pagejit_swap_direction {
  PAGEJIT_SWAP_DEVICE_TO_HOST = 0,
  PAGEJIT_SWAP_HOST_TO_DEVICE = 1,
  PAGEJIT_SWAP_DEVICE_TO_DEVICE = 2,
};

typedef struct pagejit_swap_blocks_args {
  size_t struct_size;
  int32_t direction;  // PAGEJIT_SWAP_*
  int32_t reserved;   // 0
  // The host's side should be pinned (cuMemHostAlloc, cuMemHostRegister): from and to other
  // memory the driver copies through a buffer of its own, and the call may wait.
  const void* from;
  void* to;
  int64_t block_bytes;        // at least 1
  int64_t from_stride_bytes;  // block i begins at i * stride
  int64_t to_stride_bytes;
  // Host int64 [num_pairs, 2]: from block, to block; read by the call and not kept.
  const int64_t* pairs;
  int32_t num_pairs;
  int32_t reserved1;  // 0
} pagejit_swap_blocks_args;

PAGEJIT_API pagejit_status pagejit_swap_blocks_args_init(pagejit_swap_blocks_args* args,
                                                         size_t struct_size);
// Enqueues the copies of `args` on `stream`, whose context must be current: the driver's own, in
// one call where it knows batches of copies. INVALID_ARGUMENT, DRIVER_UNAVAILABLE, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_engine_swap_blocks(pagejit_engine* engine,
                                                      const pagejit_swap_blocks_args* args,
                                                      pagejit_stream stream, pagejit_error* error);

#ifdef __cplusplus
}
#endif
