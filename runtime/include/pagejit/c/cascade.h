// Cascade attention: a batch of sequences whose KV begins with shared prefixes, in one call. Each
// query token attends to one group of KV tokens per level: level 0 holds the prefixes that most
// sequences share, the last one each sequence's own suffix; the levels' results are merged by
// their lse. Thread-safety: structs are plain values; a handle may be used from any number of
// threads at once.
#pragma once

#include "pagejit/c/attention.h"
#include "pagejit/c/merge_states.h"

#ifdef __cplusplus
extern "C" {
#endif

// More levels than any tree of prompts has.
#define PAGEJIT_MAX_CASCADE_LEVELS 32

typedef struct pagejit_cascade_spec {
  size_t struct_size;
  // The attention as if it were not cascaded. queries, causality, custom_mask and sinks are those
  // of the last level: its kernel applies them, and all levels before it are seen in full. Must
  // not have window, chunked, alibi, bidirectional_ranges or block_sparse: these go by positions
  // in the whole sequence, which no level knows. Nor latent, qq_bias, batch_invariant, pdl or an
  // out_dtype of 8 bits.
  const pagejit_kernel_spec* attention;
} pagejit_cascade_spec;

// One level: num_seqs groups of query tokens, each with KV tokens of its own. What
// pagejit_attention_args says of a sequence holds for a group. All of an array have one
// struct_size, which is what lies between them.
typedef struct pagejit_cascade_level {
  size_t struct_size;
  // Device memory, int32 [num_seqs + 1], from 0 on, not decreasing: group i has the query tokens
  // [query_start_loc[i], query_start_loc[i + 1]), none or any number. Ignored in the last level
  // where the spec's queries are one: there sequence i has query token i. All levels must end
  // with the same number of query tokens: query_start_loc[num_seqs] <= num_query_tokens. Query
  // tokens behind it are not touched.
  const int32_t* query_start_loc;
  int32_t num_seqs;  // at least 1; on the last level the sequences of the batch
  int32_t reserved;  // 0

  // The KV tokens of the group on this level alone, by the spec's kv_table, as in
  // pagejit_attention_args. A prefix may end anywhere in its last block; the next level begins
  // with a block of its own.
  const int32_t* block_table;  // int32 [num_seqs, max_blocks_per_seq]
  int64_t block_table_stride;
  int32_t max_blocks_per_seq;
  int32_t reserved1;  // 0
  // int32 [num_seqs]. 0: the group has no KV tokens on this level. On the last level the
  // sequence's own tokens, its query tokens included: with a causal mask they stand at its end,
  // and there must be no more of them than tokens.
  const int32_t* seq_lens;
  const int32_t* kv_indptr;
  const int32_t* kv_indices;
  const int32_t* kv_last_block_len;
  const int32_t* kv_start_loc;

  // As in pagejit_attention_args, of this level.
  int32_t max_seq_len;
  int32_t num_splits;
} pagejit_cascade_level;

// What is not described here is as in pagejit_attention_args, and the same for all levels.
typedef struct pagejit_cascade_args {
  size_t struct_size;
  // Host memory, read by launch and not kept: num_levels levels, at most
  // PAGEJIT_MAX_CASCADE_LEVELS.
  const pagejit_cascade_level* levels;
  int32_t num_levels;
  int32_t reserved;  // 0

  const void* q;
  int64_t q_stride_token;
  int64_t q_stride_head;

  const void* k_cache;
  const void* v_cache;
  pagejit_kv_strides k_strides;
  pagejit_kv_strides v_strides;
  const float* q_scale;
  const float* k_scale;
  const float* v_scale;
  int64_t kv_scale_stride;
  pagejit_kv_strides k_scale_strides;
  pagejit_kv_strides v_scale_strides;
  int64_t num_blocks;

  // Rows of q and out; 0 launches nothing. Where the spec's queries are one, the num_seqs of the
  // last level.
  int32_t num_query_tokens;
  int32_t num_kv_heads;

  // A query token that sees no key on any level has out = 0, lse = -inf (or the sink).
  void* out;
  int64_t out_stride_token;
  int64_t out_stride_head;
  float* lse;  // of all levels together

  // Of the last level, where the spec has them: a flag per sequence; bit q * seq_len + k, where
  // seq_len and k count the tokens of the last level.
  const uint8_t* causal_flags;
  const uint8_t* custom_mask;
  const int32_t* custom_mask_indptr;
  float soft_cap;
  int32_t reserved1;   // 0
  const float* sinks;  // take part once in a query token's sum
  float scale;
  int32_t reserved2;  // 0

  // Device memory of at least workspace_bytes(), 256-byte aligned, initialised once by
  // workspace_init. One workspace serves one stream at a time, cascades and single kernels alike.
  void* workspace;
  size_t workspace_bytes;
} pagejit_cascade_args;

typedef struct pagejit_cascade_kernel pagejit_cascade_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_cascade_level_init(pagejit_cascade_level* level,
                                                      size_t struct_size);
PAGEJIT_API pagejit_status pagejit_cascade_spec_init(pagejit_cascade_spec* spec,
                                                     size_t struct_size);
PAGEJIT_API pagejit_status pagejit_cascade_args_init(pagejit_cascade_args* args,
                                                     size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_cascade_spec_validate(const pagejit_cascade_spec* spec,
                                                         pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_spec_supports(const pagejit_cascade_spec* spec,
                                                         const pagejit_target* target,
                                                         pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_spec_canonical_text(const pagejit_cascade_spec* spec,
                                                               char* buffer, size_t buffer_size,
                                                               size_t* length,
                                                               pagejit_error* error);
// The kernels that it is made of: of all levels but the last, of the last, and the merge. Each can
// be rendered and precompiled like any other. Null: not wanted.
PAGEJIT_API pagejit_status pagejit_cascade_spec_parts(const pagejit_cascade_spec* spec,
                                                      pagejit_kernel_spec* prefix,
                                                      pagejit_kernel_spec* suffix,
                                                      pagejit_merge_states_spec* merge,
                                                      pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_cascade_kernel_prepare(pagejit_engine* engine,
                                                          const pagejit_cascade_spec* spec,
                                                          int32_t device, pagejit_stream stream,
                                                          pagejit_cascade_kernel** kernel,
                                                          pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_cascade_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_kernel_wait(const pagejit_pending* pending,
                                                       pagejit_cascade_kernel** kernel,
                                                       pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_kernel_precompile(
    pagejit_engine* engine, const pagejit_cascade_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* prefix, pagejit_kernel_info* suffix, pagejit_kernel_info* merge,
    pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_kernel_copy(const pagejit_cascade_kernel* kernel,
                                                       pagejit_cascade_kernel** copy,
                                                       pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_kernel_destroy(pagejit_cascade_kernel* kernel,
                                                          pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_cascade_kernel_get_info(const pagejit_cascade_kernel* kernel,
                                                           pagejit_kernel_info* prefix,
                                                           pagejit_kernel_info* suffix,
                                                           pagejit_kernel_info* merge,
                                                           pagejit_error* error);
// Fills both; spec->attention becomes `attention`.
PAGEJIT_API pagejit_status pagejit_cascade_kernel_get_spec(const pagejit_cascade_kernel* kernel,
                                                           pagejit_cascade_spec* spec,
                                                           pagejit_kernel_spec* attention,
                                                           pagejit_error* error);

// Enqueues num_levels + 1 launches on `stream`, after all arguments were checked: where that
// fails nothing is enqueued. Never allocates, locks or reads device memory on success; safe
// during stream capture. INVALID_ARGUMENT, WORKSPACE, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_cascade_kernel_launch(const pagejit_cascade_kernel* kernel,
                                                         const pagejit_cascade_args* args,
                                                         pagejit_stream stream,
                                                         pagejit_error* error);
// Bytes of workspace that launch needs, by the counts of `args` alone; no pointer but `levels` is
// looked at. 0 where launch would refuse these counts.
PAGEJIT_API pagejit_status pagejit_cascade_kernel_workspace_bytes(
    const pagejit_cascade_kernel* kernel, const pagejit_cascade_args* args, size_t* bytes,
    pagejit_error* error);
// Bytes that are enough for every launch of at most so many that leaves num_splits to the
// library.
PAGEJIT_API pagejit_status pagejit_cascade_kernel_max_workspace_bytes(
    const pagejit_cascade_kernel* kernel, int32_t num_levels, int32_t num_query_tokens,
    int32_t num_kv_heads, size_t* bytes, pagejit_error* error);
// The number of splits of a level, by the same counts. At least 1.
PAGEJIT_API pagejit_status pagejit_cascade_kernel_choose_num_splits(
    const pagejit_cascade_kernel* kernel, const pagejit_cascade_args* args, int32_t level,
    int32_t* num_splits, pagejit_error* error);
// As those of a pagejit_kernel; the report: the first fault of any level.
PAGEJIT_API pagejit_status pagejit_cascade_kernel_workspace_init(
    const pagejit_cascade_kernel* kernel, void* workspace, size_t workspace_bytes,
    pagejit_stream stream, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_cascade_kernel_read_debug_report(const pagejit_cascade_kernel* kernel, void* workspace,
                                         pagejit_stream stream, pagejit_error* error);

#ifdef __cplusplus
}
#endif
