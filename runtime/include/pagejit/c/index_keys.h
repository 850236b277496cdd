// The keys of a sparse-attention indexer (DeepSeek-V3.2): quantising them into a paged cache, and
// gathering them back. A block is vLLM's (indexer_k_quant_and_cache): block_size * head_size codes
// of e4m3, token by token, then block_size * (head_size / quant_block_size) scales of f32; value
// = code * scale. Thread-safety: structs are plain values; a handle may be used from any number
// of threads at once.
#pragma once

#include "pagejit/c/cache_write.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of a block of keys, which vLLM calls a page; 0 where a number is not positive.
PAGEJIT_API int64_t pagejit_index_page_bytes(int32_t block_size, int32_t head_size,
                                             int32_t quant_block_size);

// ---- Quantising keys into the cache ----

typedef struct pagejit_index_key_write_spec {
  size_t struct_size;
  int32_t dtype;      // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; of k: f16, bf16 or f32
  int32_t head_size;  // = 128; [4, 4096]
  // = 128; elements that share a scale: a multiple of 4 that divides head_size
  int32_t quant_block_size;
  int32_t block_size;  // = 64; tokens per block: [1, 65536]
  // Scales are rounded up to a power of two (ue8m0), still stored as f32.
  int32_t power_of_two_scale;  // 0 or 1
  // What k and its stride are multiples of, in bytes: 1, 2, 4, 8 or 16, at least an element.
  int32_t row_alignment;  // = 16
  int32_t debug;          // 0 or 1; check every slot, report that of the lowest token
  int32_t reserved;       // 0
} pagejit_index_key_write_spec;

// Device pointers. The scale of a quant block is max(greatest magnitude, 1e-4) / 448, rounded up to
// a power of two where the spec asks for it; code = value / scale, to nearest even.
typedef struct pagejit_index_key_write_args {
  size_t struct_size;
  const void* k;           // [num_tokens, head_size], contiguous rows
  int64_t k_stride_token;  // elements
  // Blocks, block i at i * block_stride_bytes. Both are multiples of 4 and of the greatest power of
  // two, at most 16, that divides index_page_bytes().
  void* cache;
  int64_t block_stride_bytes;
  // int64 [num_tokens]: block * block_size + token of the block; negative: the token is not
  // written. Two tokens must not have one slot. num_tokens is the length of this array; k may
  // have more rows.
  const int64_t* slot_mapping;
  int32_t num_tokens;  // 0 launches nothing
  int32_t reserved;    // 0

  // Where the spec has debug; debug_report as in pagejit_cache_write_args.
  int64_t num_blocks;
  void* debug_report;
} pagejit_index_key_write_args;

typedef struct pagejit_index_key_write_kernel pagejit_index_key_write_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_index_key_write_spec_init(pagejit_index_key_write_spec* spec,
                                                             size_t struct_size);
PAGEJIT_API pagejit_status pagejit_index_key_write_args_init(pagejit_index_key_write_args* args,
                                                             size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_index_key_write_spec_validate(
    const pagejit_index_key_write_spec* spec, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_spec_supports(
    const pagejit_index_key_write_spec* spec, const pagejit_target* target, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_spec_canonical_text(
    const pagejit_index_key_write_spec* spec, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_prepare(
    pagejit_engine* engine, const pagejit_index_key_write_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_index_key_write_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_index_key_write_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_wait(
    const pagejit_pending* pending, pagejit_index_key_write_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_precompile(
    pagejit_engine* engine, const pagejit_index_key_write_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_render(
    const pagejit_engine* engine, const pagejit_index_key_write_spec* spec,
    const pagejit_target* target, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_index_key_write_kernel_copy(const pagejit_index_key_write_kernel* kernel,
                                    pagejit_index_key_write_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_destroy(
    pagejit_index_key_write_kernel* kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_get_info(
    const pagejit_index_key_write_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_launch(
    const pagejit_index_key_write_kernel* kernel, const pagejit_index_key_write_args* args,
    pagejit_stream stream, pagejit_error* error);
// As those of a pagejit_cache_write_kernel.
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_init_debug_report(
    const pagejit_index_key_write_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_write_kernel_read_debug_report(
    const pagejit_index_key_write_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);

// ---- Gathering keys into contiguous rows ----

typedef struct pagejit_index_key_gather_spec {
  size_t struct_size;
  int32_t head_size;         // = 128; these three as in pagejit_index_key_write_spec
  int32_t quant_block_size;  // = 128
  int32_t block_size;        // = 64
  // What k_out and its stride are multiples of, in bytes: 4, 8 or 16.
  int32_t row_alignment;  // = 16
  int32_t debug;          // 0 or 1; check every block id, report that of the lowest token
  int32_t reserved;       // 0
} pagejit_index_key_gather_spec;

// Device pointers.
typedef struct pagejit_index_key_gather_args {
  size_t struct_size;
  const void* cache;  // as in pagejit_index_key_write_args
  int64_t block_stride_bytes;
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

  void* k_out;  // codes [num_tokens, head_size], row stride in bytes
  int64_t k_out_stride_token;
  float* scale_out;  // [num_tokens, head_size / quant_block_size], row stride in elements
  int64_t scale_out_stride_token;

  // Where the spec has debug; debug_report as in pagejit_cache_write_args.
  int64_t num_blocks;
  void* debug_report;
} pagejit_index_key_gather_args;

typedef struct pagejit_index_key_gather_kernel pagejit_index_key_gather_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_index_key_gather_spec_init(pagejit_index_key_gather_spec* spec,
                                                              size_t struct_size);
PAGEJIT_API pagejit_status pagejit_index_key_gather_args_init(pagejit_index_key_gather_args* args,
                                                              size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_index_key_gather_spec_validate(
    const pagejit_index_key_gather_spec* spec, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_spec_supports(
    const pagejit_index_key_gather_spec* spec, const pagejit_target* target, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_spec_canonical_text(
    const pagejit_index_key_gather_spec* spec, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_prepare(
    pagejit_engine* engine, const pagejit_index_key_gather_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_index_key_gather_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_index_key_gather_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_wait(
    const pagejit_pending* pending, pagejit_index_key_gather_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_precompile(
    pagejit_engine* engine, const pagejit_index_key_gather_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_render(
    const pagejit_engine* engine, const pagejit_index_key_gather_spec* spec,
    const pagejit_target* target, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_index_key_gather_kernel_copy(const pagejit_index_key_gather_kernel* kernel,
                                     pagejit_index_key_gather_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_destroy(
    pagejit_index_key_gather_kernel* kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_get_info(
    const pagejit_index_key_gather_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_launch(
    const pagejit_index_key_gather_kernel* kernel, const pagejit_index_key_gather_args* args,
    pagejit_stream stream, pagejit_error* error);
// As those of a pagejit_cache_write_kernel.
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_init_debug_report(
    const pagejit_index_key_gather_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_key_gather_kernel_read_debug_report(
    const pagejit_index_key_gather_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);

#ifdef __cplusplus
}
#endif
