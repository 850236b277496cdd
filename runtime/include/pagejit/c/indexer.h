// The kernels of a sparse-attention indexer (DeepSeek-V3.2): logits of queries and keys, and the
// greatest values of rows of logits. Its keys are in index_keys.h. Thread-safety: structs are
// plain values; a handle may be used from any number of threads at once.
#pragma once

#include "pagejit/c/index_keys.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which columns of the logits a row has: one of two ways; device pointers. Part of other structs.
typedef struct pagejit_index_row_ranges {
  // As prefill has it: row r has the columns [row_begins[r], row_ends[r]); row_begins null: all
  // 0.
  const int32_t* row_begins;  // int32 [num_rows]
  const int32_t* row_ends;    // int32 [num_rows]
  // As decode has it: row r is query token i = r % next_n of sequence s = r / next_n, which sees
  // the columns [0, seq_lens[s] - next_n + i + 1). The others are null.
  const int32_t* seq_lens;  // int32 [num_rows / next_n]
  int32_t next_n;           // = 1; at least 1, divides num_rows
  int32_t reserved;         // 0
} pagejit_index_row_ranges;

// ---- Logits (DeepGEMM: fp8_mqa_logits and fp8_paged_mqa_logits) ----

typedef struct pagejit_index_logits_spec {
  size_t struct_size;
  int32_t num_heads;  // = 64; a multiple of 8 in [8, 128]
  int32_t head_size;  // = 128; a multiple of 32 in [32, 256]
  // Tokens per block, [1, 65536]: keys lie in blocks with one scale per key (quant_block_size
  // equals head_size). 0: keys are contiguous.
  int32_t block_size;
  // Columns that a row does not have become -inf; else they are not written.
  int32_t clean;  // 0 or 1
  // Check every block id (report that of the lowest sequence), or, where keys are contiguous,
  // every row's range (report the lowest row).
  int32_t debug;     // 0 or 1
  int32_t reserved;  // 0
} pagejit_index_logits_spec;

// Device pointers. Row r has the columns that `ranges` give it, and
//   logits[r, n - column_begin] = k_scale[n] * sum over heads h of weights[r, h] *
//                                 max(0, sum over i of q[r, h, i] * k[n, i])
// for each key n of them in [column_begin, column_begin + num_columns), summed in f32.
typedef struct pagejit_index_logits_args {
  size_t struct_size;
  const void* q;         // e4m3 [num_rows, num_heads, head_size]; 4-byte aligned
  int64_t q_stride_row;  // bytes, multiples of 4
  int64_t q_stride_head;
  // f32 [num_rows, num_heads], row stride in elements. What q was scaled by belongs in here.
  const float* weights;
  int64_t weights_stride;

  // Contiguous keys: e4m3 [num_keys, head_size] with row stride k_stride in bytes, both multiples
  // of 16, or of 8 where head_size is no multiple of 64; k_scale f32 [num_keys]. Blocks: as in
  // pagejit_index_key_write_args, k_stride is their stride in bytes; k_scale is not used.
  const void* k;
  int64_t k_stride;
  const float* k_scale;
  int32_t num_keys;  // contiguous keys; columns end here at the latest
  int32_t reserved;  // 0
  // Blocks: int32 [num_rows / ranges.next_n, at least as many blocks as the columns need].
  const int32_t* block_table;
  int64_t block_table_stride;

  // With blocks row r is of sequence r / next_n also where the ranges are begins and ends. Keys
  // are read from the first to the last that any of up to four neighbouring rows (of a sequence)
  // has.
  pagejit_index_row_ranges ranges;
  int32_t num_rows;  // 0 launches nothing
  int32_t column_begin;
  // 0 launches nothing. At most 33,553,920, half of that where head_size is above 128, and with
  // column_begin at most 2,147,418,112.
  int32_t num_columns;
  int32_t reserved1;  // 0

  float* logits;  // [num_rows, num_columns]
  int64_t logits_stride;

  // Where the spec has debug; as in pagejit_cache_write_args. num_blocks: of keys in blocks.
  int64_t num_blocks;
  void* debug_report;
} pagejit_index_logits_args;

typedef struct pagejit_index_logits_kernel pagejit_index_logits_kernel;  // a handle

// A stride for rows of so many columns that suits a default pagejit_top_k_spec; and how many rows
// of so many columns fit in a buffer, 0: not one, and columns have to be divided too.
PAGEJIT_API int64_t pagejit_index_logits_stride(int64_t num_columns);
PAGEJIT_API int64_t pagejit_index_logits_rows(int64_t budget_bytes, int64_t num_columns);

PAGEJIT_API pagejit_status pagejit_index_logits_spec_init(pagejit_index_logits_spec* spec,
                                                          size_t struct_size);
PAGEJIT_API pagejit_status pagejit_index_logits_args_init(pagejit_index_logits_args* args,
                                                          size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_index_logits_spec_validate(const pagejit_index_logits_spec* spec,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_spec_supports(const pagejit_index_logits_spec* spec,
                                                              const pagejit_target* target,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_index_logits_spec_canonical_text(const pagejit_index_logits_spec* spec, char* buffer,
                                         size_t buffer_size, size_t* length, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_prepare(
    pagejit_engine* engine, const pagejit_index_logits_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_index_logits_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_index_logits_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_wait(const pagejit_pending* pending,
                                                            pagejit_index_logits_kernel** kernel,
                                                            pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_precompile(
    pagejit_engine* engine, const pagejit_index_logits_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_render(const pagejit_engine* engine,
                                                              const pagejit_index_logits_spec* spec,
                                                              const pagejit_target* target,
                                                              char* buffer, size_t buffer_size,
                                                              size_t* length, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_index_logits_kernel_copy(const pagejit_index_logits_kernel* kernel,
                                 pagejit_index_logits_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_destroy(pagejit_index_logits_kernel* kernel,
                                                               pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_get_info(
    const pagejit_index_logits_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_launch(
    const pagejit_index_logits_kernel* kernel, const pagejit_index_logits_args* args,
    pagejit_stream stream, pagejit_error* error);
// As those of a pagejit_cache_write_kernel.
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_init_debug_report(
    const pagejit_index_logits_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_index_logits_kernel_read_debug_report(
    const pagejit_index_logits_kernel* kernel, void* report, pagejit_stream stream,
    pagejit_error* error);

// ---- The greatest values of each row (vLLM: top_k_per_row_prefill and _decode) ----

typedef struct pagejit_top_k_spec {
  size_t struct_size;
  // What logits and their stride are multiples of, in bytes: 4, 8 or 16.
  int32_t row_alignment;  // = 16
  int32_t debug;          // 0 or 1; check every row's range, report that of the lowest row
} pagejit_top_k_spec;

// Device pointers; strides count elements. Row r of the result holds the indices of the k greatest
// of the row's logits, counted from the row's begin, in rising order, and -1 behind them where the
// row has fewer than k.
typedef struct pagejit_top_k_args {
  size_t struct_size;
  const float* logits;  // [num_rows, num_columns]
  int64_t logits_stride;
  pagejit_index_row_ranges ranges;
  int32_t num_rows;     // 0 launches nothing
  int32_t num_columns;  // ranges are cut off here; [0, 2147418112]
  int32_t k;            // at least 1; at most 16,777,215 where rows are split
  int32_t reserved;     // 0
  int32_t* indices;     // [num_rows, k]
  int64_t indices_stride;

  // Where rows are few and long, several CTAs do a row with a workspace: device memory of at least
  // pagejit_top_k_kernel.workspace_bytes(), aligned to 16, initialised once by workspace_init(),
  // used by one stream at a time, by any launches of any pagejit_top_k_kernel. The result is the
  // same. num_splits: CTAs of a row, [0, 128]. 0: as choose_num_splits() says, 1 without a
  // workspace. More than 1 only for up to 128 rows.
  void* workspace;
  size_t workspace_bytes;
  int32_t num_splits;
  int32_t reserved1;  // 0

  // Where the spec has debug; as in pagejit_cache_write_args.
  void* debug_report;
} pagejit_top_k_args;

typedef struct pagejit_top_k_kernel pagejit_top_k_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_top_k_spec_init(pagejit_top_k_spec* spec, size_t struct_size);
PAGEJIT_API pagejit_status pagejit_top_k_args_init(pagejit_top_k_args* args, size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_top_k_spec_validate(const pagejit_top_k_spec* spec,
                                                       pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_spec_supports(const pagejit_top_k_spec* spec,
                                                       const pagejit_target* target,
                                                       pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_spec_canonical_text(const pagejit_top_k_spec* spec,
                                                             char* buffer, size_t buffer_size,
                                                             size_t* length, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_top_k_kernel_prepare(pagejit_engine* engine,
                                                        const pagejit_top_k_spec* spec,
                                                        int32_t device, pagejit_stream stream,
                                                        pagejit_top_k_kernel** kernel,
                                                        pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_top_k_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_wait(const pagejit_pending* pending,
                                                     pagejit_top_k_kernel** kernel,
                                                     pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_precompile(pagejit_engine* engine,
                                                           const pagejit_top_k_spec* spec,
                                                           const pagejit_target* target,
                                                           pagejit_kernel_info* info,
                                                           pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_render(const pagejit_engine* engine,
                                                       const pagejit_top_k_spec* spec,
                                                       const pagejit_target* target, char* buffer,
                                                       size_t buffer_size, size_t* length,
                                                       pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_copy(const pagejit_top_k_kernel* kernel,
                                                     pagejit_top_k_kernel** copy,
                                                     pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_destroy(pagejit_top_k_kernel* kernel,
                                                        pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_get_info(const pagejit_top_k_kernel* kernel,
                                                         pagejit_kernel_info* info,
                                                         pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR; WORKSPACE where it needs more workspace than there is or it is
// misaligned.
PAGEJIT_API pagejit_status pagejit_top_k_kernel_launch(const pagejit_top_k_kernel* kernel,
                                                       const pagejit_top_k_args* args,
                                                       pagejit_stream stream, pagejit_error* error);
// By the counts of `args`: how many CTAs do a row where num_splits is 0 and there is a workspace, 1
// where num_rows or k is below 1; and the bytes of workspace that its launch then needs, 0 where it
// needs none. With num_splits, the bytes for so many. No pointer is looked at.
PAGEJIT_API pagejit_status pagejit_top_k_choose_num_splits(const pagejit_top_k_args* args,
                                                           int32_t* num_splits,
                                                           pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_workspace_bytes(const pagejit_top_k_args* args,
                                                         size_t* bytes, pagejit_error* error);
// Enqueues the one-time initialisation of a workspace: of its counters, the first 512 bytes.
// WORKSPACE where it is null, smaller or not 16-byte aligned; DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_top_k_kernel_workspace_init(const pagejit_top_k_kernel* kernel,
                                                               void* workspace,
                                                               size_t workspace_bytes,
                                                               pagejit_stream stream,
                                                               pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_init_debug_report(
    const pagejit_top_k_kernel* kernel, void* report, pagejit_stream stream, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_top_k_kernel_read_debug_report(
    const pagejit_top_k_kernel* kernel, void* report, pagejit_stream stream, pagejit_error* error);

#ifdef __cplusplus
}
#endif
