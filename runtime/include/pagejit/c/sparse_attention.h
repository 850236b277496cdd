// Sparse attention (DeepSeek-V3.2) from an indexer's queries to the result, in one call: logits
// of all keys, the top_k greatest of each row, and attention over the latent rows of these tokens
// alone. Thread-safety: structs are plain values; a handle may be used from any number of threads
// at once.
#pragma once

#include "pagejit/c/attention.h"
#include "pagejit/c/indexer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pagejit_sparse_attention_spec {
  size_t struct_size;
  // kv_table must be PAGEJIT_KV_TABLE_POSITIONS, which needs latent, and queries to be one: each
  // query token is a sequence of this kernel. With debug the other kernels check too.
  const pagejit_kernel_spec* attention;
  int32_t index_num_heads;  // = 64; as num_heads and head_size in pagejit_index_logits_spec
  int32_t index_head_size;  // = 128
  // Index keys are contiguous; else in blocks of attention.block_size tokens, by the same block
  // table as K.
  int32_t contiguous_index_keys;  // 0 or 1
  int32_t reserved;               // 0
} pagejit_sparse_attention_spec;

// The logits of 100 rows of 160k tokens: enough for launches that fill a GPU.
#define PAGEJIT_DEFAULT_LOGITS_BYTES ((int64_t)64 << 20)

// Device pointers. A row is a query token.
typedef struct pagejit_sparse_attention_args {
  size_t struct_size;
  // Rows of index_q, of q and of out: [0, 65535]; 0 launches nothing.
  int32_t num_rows;
  // Tokens that a row sees at most: [1, 16777215]. A row with fewer sees them all; one without
  // any has out = 0, lse = -inf.
  int32_t top_k;

  // ---- The indexer: as in pagejit_index_logits_args, where the names have no "index_" ----
  const void* index_q;
  int64_t index_q_stride_row;  // bytes
  int64_t index_q_stride_head;
  const float* index_weights;
  int64_t index_weights_stride;
  const void* index_k;
  int64_t index_k_stride;      // bytes; of keys, or of blocks
  const float* index_k_scale;  // contiguous keys
  int32_t num_index_keys;      // contiguous keys
  int32_t reserved;            // 0
  // The tokens that a row chooses from. Blocks: row r is of the sequence in row r / next_n of
  // block_table; it has what seq_lens and next_n say, or [0, row_ends[r]) with row_begins null.
  // Contiguous keys: [row_begins[r], row_ends[r]), where its sequence's token 0 is row_begins[r];
  // seq_lens is null and next_n is not looked at.
  pagejit_index_row_ranges ranges;
  // Blocks: upper bound of the tokens of a sequence: those behind it are not seen, and logits take
  // memory for so many columns. 0: max_blocks_per_seq * block_size, which it is cut down to.
  int32_t max_seq_len;
  int32_t reserved1;  // 0
  // Bytes of the workspace that logits take at most. At least those of one row, with seq_lens of
  // the next_n rows of a sequence: a row has index_logits_stride() floats for its columns
  // (max_seq_len, num_index_keys). Changes speed only.
  int64_t logits_bytes;  // = PAGEJIT_DEFAULT_LOGITS_BYTES

  // Optional: where the positions that each row chose go, in rising order and -1 behind the last:
  // int32 [num_rows, top_k]. Null: into the workspace.
  int32_t* indices;
  int64_t indices_stride;  // at least top_k

  // ---- Attention: as in pagejit_attention_args ----
  const void* q;
  int64_t q_stride_token;
  int64_t q_stride_head;
  const float* q_scale;

  const void* k_cache;
  pagejit_kv_strides k_strides;
  const float* k_scale;
  int64_t kv_scale_stride;
  int64_t num_blocks;  // of index keys too

  const int32_t* block_table;
  int64_t block_table_stride;
  int32_t max_blocks_per_seq;
  int32_t reserved2;  // 0
  // int32 [num_rows]: the row of block_table that a row's sequence has; with blocks r / next_n.
  // Null where that is r.
  const int32_t* query_seqs;

  void* out;
  int64_t out_stride_token;
  int64_t out_stride_head;
  const float* out_scale;
  float* lse;

  float soft_cap;
  int32_t reserved3;  // 0
  const float* sinks;
  int32_t num_kv_heads;  // = 1
  float scale;
  int32_t num_splits;
  int32_t reserved4;  // 0

  // Device memory of at least workspace_bytes(), 256-byte aligned, initialised once by
  // workspace_init. One workspace serves one stream at a time, of this and of other attention
  // kernels alike.
  void* workspace;
  size_t workspace_bytes;
} pagejit_sparse_attention_args;

typedef struct pagejit_sparse_attention_kernel pagejit_sparse_attention_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_sparse_attention_spec_init(pagejit_sparse_attention_spec* spec,
                                                              size_t struct_size);
PAGEJIT_API pagejit_status pagejit_sparse_attention_args_init(pagejit_sparse_attention_args* args,
                                                              size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_sparse_attention_spec_validate(
    const pagejit_sparse_attention_spec* spec, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_spec_supports(
    const pagejit_sparse_attention_spec* spec, const pagejit_target* target, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_spec_canonical_text(
    const pagejit_sparse_attention_spec* spec, char* buffer, size_t buffer_size, size_t* length,
    pagejit_error* error);
// The kernels that it is made of; each can be rendered and precompiled like any other. Null: not
// wanted.
PAGEJIT_API pagejit_status pagejit_sparse_attention_spec_parts(
    const pagejit_sparse_attention_spec* spec, pagejit_index_logits_spec* logits,
    pagejit_top_k_spec* top_k, pagejit_kernel_spec* attention, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_prepare(
    pagejit_engine* engine, const pagejit_sparse_attention_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_sparse_attention_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_sparse_attention_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_wait(
    const pagejit_pending* pending, pagejit_sparse_attention_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_precompile(
    pagejit_engine* engine, const pagejit_sparse_attention_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* logits, pagejit_kernel_info* top_k, pagejit_kernel_info* attention,
    pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_sparse_attention_kernel_copy(const pagejit_sparse_attention_kernel* kernel,
                                     pagejit_sparse_attention_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_destroy(
    pagejit_sparse_attention_kernel* kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_get_info(
    const pagejit_sparse_attention_kernel* kernel, pagejit_kernel_info* logits,
    pagejit_kernel_info* top_k, pagejit_kernel_info* attention, pagejit_error* error);
// Fills both; spec->attention becomes `attention`.
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_get_spec(
    const pagejit_sparse_attention_kernel* kernel, pagejit_sparse_attention_spec* spec,
    pagejit_kernel_spec* attention, pagejit_error* error);

// Enqueues for each chunk of rows a launch for their logits and one for the greatest of them,
// then one for the attention of all rows, after all arguments were checked: where that fails
// nothing is enqueued. Never allocates, locks or reads device memory on success; safe during
// stream capture. INVALID_ARGUMENT, WORKSPACE, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_launch(
    const pagejit_sparse_attention_kernel* kernel, const pagejit_sparse_attention_args* args,
    pagejit_stream stream, pagejit_error* error);
// By the counts of `args` and by whether `indices` and ranges.seq_lens are null: bytes of
// workspace that launch needs, and the number of chunks. 0 where launch would refuse these
// counts.
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_workspace_bytes(
    const pagejit_sparse_attention_kernel* kernel, const pagejit_sparse_attention_args* args,
    size_t* bytes, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_num_chunks(
    const pagejit_sparse_attention_kernel* kernel, const pagejit_sparse_attention_args* args,
    int32_t* num_chunks, pagejit_error* error);
// Bytes that are enough for every launch of at most so many rows, top_k and logits_bytes that
// leaves num_splits to the library, however long the sequences are.
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_max_workspace_bytes(
    const pagejit_sparse_attention_kernel* kernel, int32_t num_rows, int32_t top_k,
    int64_t logits_bytes, size_t* bytes, pagejit_error* error);
// As those of a pagejit_kernel; the report: the first fault of any of the kernels.
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_workspace_init(
    const pagejit_sparse_attention_kernel* kernel, void* workspace, size_t workspace_bytes,
    pagejit_stream stream, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_sparse_attention_kernel_read_debug_report(
    const pagejit_sparse_attention_kernel* kernel, void* workspace, pagejit_stream stream,
    pagejit_error* error);

#ifdef __cplusplus
}
#endif
