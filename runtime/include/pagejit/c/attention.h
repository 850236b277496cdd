// Paged attention: pagejit_attention_args, the arguments of one launch, and pagejit_kernel, the
// handle. Pointers in arguments are device pointers unless said otherwise, pagejit reads none of
// them on the host; strides count elements. Thread-safety: structs are plain values; a handle may
// be used from any number of threads at once.
#pragma once

#include "pagejit/c/engine.h"
#include "pagejit/c/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

// Block-sparse attention; the rule stands in pagejit/launch.h. Part of other structs.
typedef struct pagejit_block_sparse_args {
  int32_t local_blocks;       // at least 0; 1 is the query's own block alone
  int32_t vert_stride;        // = 1; [1, 65536]; 1: all are seen
  int32_t block_size;         // = 64; tokens: [1, 65536]
  int32_t head_sliding_step;  // 0: the same blocks for all heads
  int32_t tp_rank;            // this GPU's place among those that share the heads, at least 0
} pagejit_block_sparse_args;

typedef struct pagejit_attention_args {
  size_t struct_size;
  // [num_query_tokens, num_kv_heads * group_size, head_size], innermost stride 1. 16-byte
  // aligned, strides multiples of 8. Where the spec's queries are one, token i is sequence i's.
  const void* q;
  int64_t q_stride_token;
  int64_t q_stride_head;

  // Caches as described by pagejit_kv_strides. Aligned to the spec's kv_alignment, 16 bytes. K
  // and V may lie in one allocation, interleaved. Where the spec is latent, k_cache alone:
  // [num_blocks, block_size, head_size]; v_cache and v_scale are null, and v_strides is not
  // looked at. Where its kv_layout is PAGEJIT_KV_LAYOUT_DS_MLA too, [num_blocks, block_size,
  // PAGEJIT_DS_MLA_ROW_BYTES], with strides in bytes, and k_scale is null: the rows hold their
  // scales.
  const void* k_cache;
  const void* v_cache;
  pagejit_kv_strides k_strides;
  pagejit_kv_strides v_strides;
  // Where the spec's q_dtype or kv_dtype has 8 bits or 4, f32 device memory, positive and finite:
  // an element's value is its code's times the scale. q_scale[0] for all of q; k_scale[i *
  // kv_scale_stride] and v_scale[i * kv_scale_stride] for KV head i: with stride 0 one scale for
  // all.
  const float* q_scale;
  const float* k_scale;
  const float* v_scale;
  int64_t kv_scale_stride;
  // Where the spec has token_scales, instead of kv_scale_stride: k_scale and v_scale hold one for
  // each row of K and V, by these strides in floats. [num_blocks, block_size, num_kv_heads]:
  // {block_size*num_kv_heads, num_kv_heads, 1}. In line behind rows of head_size elements:
  // k_scale is k_cache + head_size bytes (int4: half of that), and the strides are a fourth of
  // K's (int4: an eighth). Without blocks, `token` and `head` hold.
  pagejit_kv_strides k_scale_strides;
  pagejit_kv_strides v_scale_strides;
  // Number of blocks in the caches; used only by debug kernels to check block ids. 0 = not
  // checked.
  int64_t num_blocks;

  // Where the spec's kv_table is blocks: int32 [num_seqs, max_blocks_per_seq], row stride
  // block_table_stride >= max_blocks_per_seq. Entries at or beyond ceil(seq_len / block_size) may
  // hold anything.
  const int32_t* block_table;
  int64_t block_table_stride;
  int32_t max_blocks_per_seq;
  int32_t reserved;  // 0

  // int32 [num_seqs]: tokens in the cache per sequence, the query tokens included. A query token
  // that sees no key has out = 0, lse = -inf.
  const int32_t* seq_lens;

  // Where kv_table is CSR, instead of block_table and seq_lens: the blocks of sequence i are
  // kv_indices[kv_indptr[i]] to kv_indices[kv_indptr[i + 1] - 1], and the last of them holds
  // kv_last_block_len[i] tokens, 1 to block_size (ignored where there is no block). int32
  // [num_seqs + 1], [kv_indptr[num_seqs]] and [num_seqs].
  const int32_t* kv_indptr;
  const int32_t* kv_indices;
  const int32_t* kv_last_block_len;
  // Where kv_table is contiguous, instead of block_table and seq_lens: the tokens of sequence i
  // are the rows [kv_start_loc[i], kv_start_loc[i + 1]) of K and V, [num_tokens, num_kv_heads,
  // head_size] by k_strides.token, k_strides.head and the same of V. int32 [num_seqs + 1].
  const int32_t* kv_start_loc;
  // Where kv_table is slots or positions: each query token is a sequence of its own here, and
  // sees the tokens of its list, int32 [num_seqs, max_list_len] with token_list_stride elements
  // from one list to the next, at least max_list_len. Entries in any order; a negative one is no
  // token, and a token named twice counts twice. An entry is the token's slot in the cache, block
  // * block_size + place in the block, below 2^31; or its position in its sequence, whose blocks
  // stand in row query_seqs[i] of block_table, int32 [num_seqs] (null: in row i). seq_lens[i]
  // entries of list i are looked at; null: max_list_len of each. A list without a token gives out
  // = 0, lse = -inf.
  const int32_t* token_lists;
  int64_t token_list_stride;
  int32_t max_list_len;
  int32_t reserved1;  // 0
  const int32_t* query_seqs;

  // Where queries are not one: int32 [num_seqs + 1], from 0 on, not decreasing: sequence i has
  // the query tokens [query_start_loc[i], query_start_loc[i + 1]), none or any number, and
  // query_start_loc[num_seqs] <= num_query_tokens; rows of q and out behind that are not touched.
  // The last query token of a sequence stands at its last KV token. num_query_tokens: [0, INT32_MAX
  // / group_size]. Else ignored.
  const int32_t* query_start_loc;
  int32_t num_query_tokens;
  int32_t reserved2;  // 0
  // Where causality is per sequence: uint8 [num_seqs], not 0 = causal.
  const uint8_t* causal_flags;

  // As q, but with head_size_v elements. 16-byte aligned, strides multiples of 8.
  void* out;
  int64_t out_stride_token;
  int64_t out_stride_head;
  // Where the spec's out_dtype has 8 bits: f32 [1] in device memory, positive and finite. The
  // result is divided by it and rounded to nearest even; what lies beyond the range becomes the
  // greatest value.
  const float* out_scale;

  // Optional f32 [num_query_tokens, num_kv_heads * group_size], contiguous: natural log of the
  // sum of exp(score) over the keys that are seen, where a score is what the softmax gets
  // (scaled, capped, biased); a sink takes part in the sum. Null: not written.
  float* lse;

  // Where the spec has a window: a query token at position p sees the keys [p - window_left, p +
  // window_right] and no others. Negative: no limit on that side.
  int32_t window_left;   // = -1
  int32_t window_right;  // = -1
  // Where the spec is chunked: a query token at position p sees the keys of its own chunk, [p - p
  // % chunk_size, p - p % chunk_size + chunk_size), as far as causality allows. Positive.
  int32_t chunk_size;
  int32_t reserved3;  // 0
  // Where the spec has custom_mask: bits, packed from the lowest of each byte on, the format of
  // FlashInfer's packed custom mask. Those of sequence i start at byte custom_mask_indptr[i]; bit
  // q * seq_len + k says whether its query token q sees its key k, as far as causality and
  // windows let it. uint8 [custom_mask_indptr[num_seqs]] and int32 [num_seqs + 1].
  const uint8_t* custom_mask;
  const int32_t* custom_mask_indptr;
  // Where the spec has bidirectional_ranges: int32 [num_seqs, max_bidirectional_ranges, 2], with
  // bidirectional_ranges_stride elements from one sequence to the next, at least twice
  // max_bidirectional_ranges, or 0 for the same ranges in all sequences. Pairs [begin, end) of
  // positions in the sequence (vLLM's mm_prefix_range names the last position instead of end);
  // one with begin >= end is empty, others may overlap and reach beyond the sequence. A query
  // token at a position inside of a range sees all keys of that range too, whatever causality,
  // window or chunk say. ranges_within_window: whatever causality says, but no key that its
  // window or chunk hides. The custom mask hides keys of ranges like any others. Null is legal
  // for 0 ranges.
  const int32_t* bidirectional_ranges;
  int64_t bidirectional_ranges_stride;
  int32_t max_bidirectional_ranges;
  int32_t ranges_within_window;  // 0 or 1
  // Where the spec is block_sparse.
  pagejit_block_sparse_args block_sparse;
  // Where the spec has soft_cap: positive and finite.
  float soft_cap;
  // Where the spec has alibi: f32 [num_kv_heads * group_size]; slope * (key position - query
  // position) is added to the score.
  const float* alibi_slopes;
  // Where the spec has qq_bias, as trees of speculated tokens need it: f32 [num_seqs, rows,
  // columns] by these strides in elements, innermost 1, rows and columns for the longest sequence
  // of query tokens at least. Stride of a sequence 0: one matrix for all, vLLM's [q, q]. What
  // query token i of a sequence gets at query token j of the same, where that is a key:
  // bias[i][j] is added to the scaled and capped score, beside ALiBi's; keys before the query
  // tokens get nothing. -inf hides the key, +inf and NaN are not allowed. Entries of keys that
  // are hidden anyway may hold anything.
  const float* qq_bias;
  int64_t qq_bias_stride_seq;
  int64_t qq_bias_stride_row;
  // Where the spec has sinks: f32 [num_kv_heads * group_size], logits.
  const float* sinks;

  int32_t num_seqs;  // [0, 65535]; 0 launches nothing
  // [1, 65535]; where queries are one and a KV head's group takes several tiles of rows, [1, 65535
  // / tiles].
  int32_t num_kv_heads;
  // Softmax scale, usually 1/sqrt(head_size). Finite.
  float scale;

  // Upper bound of what seq_lens will hold while this launch (or a graph that captured it) is
  // used; it only steers the number of splits, a longer sequence is still computed right. 0:
  // max_blocks_per_seq * block_size; without a block table it is not known, and nothing is split.
  int32_t max_seq_len;
  // Splits of the KV sequence per (sequence, KV head): the launch's grid. [0, 512]; 0: chosen by
  // the library. More than 1 only for up to 65,536 merge units (up to 16 rows of one KV head and
  // one sequence, or one tile of rows where queries are shared). A batch-invariant kernel divides
  // sequences at multiples of 2,048 tokens whatever this is; where a sequence has more splits than
  // the grid, one CTA does them in turn.
  int32_t num_splits;
  int32_t reserved4;  // 0

  // Device memory of at least workspace_bytes(...), 256-byte aligned, initialised once by
  // workspace_init; null is legal where workspace_bytes is 0. One workspace serves one stream at
  // a time.
  void* workspace;
  size_t workspace_bytes;
} pagejit_attention_args;

typedef struct pagejit_kernel pagejit_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_attention_args_init(pagejit_attention_args* args,
                                                       size_t struct_size);

// A handle for `spec` on a device: from memory, bundles, read-only directories, the cache
// directory, the remote, or compiled; each key once, in all processes that share the cache
// directory. device -1 = that of the current context (one is required); >= 0 = that ordinal, whose
// primary context is retained. INVALID_ARGUMENT: the spec, a device below -1, -1 without a current
// context. UNSUPPORTED: the spec, in itself or on this GPU and with this compiler. NOT_FOUND: no
// such device. DRIVER_UNAVAILABLE, DRIVER_ERROR. COMPILER_UNAVAILABLE, COMPILE_FAILED: where it is
// not stored. DENIED where nothing is stored and the options forbid compiling; also where `stream`
// (may be null) is being captured and the kernel is not ready. The handle may outlive the engine.
PAGEJIT_API pagejit_status pagejit_kernel_prepare(pagejit_engine* engine,
                                                  const pagejit_kernel_spec* spec, int32_t device,
                                                  pagejit_stream stream, pagejit_kernel** kernel,
                                                  pagejit_error* error);
// At once: rendering, looking up, compiling and loading happen on threads of the engine. Errors
// of the spec, of a device of -1 and of a stream that is being captured are returned here, all
// others come with the result. `options` may be null. The kernel of device -1 is prepared in the
// context that is current now, which must live until there is a result.
PAGEJIT_API pagejit_status pagejit_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_kernel_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
// Blocks until there is a result, then makes a handle of it, a new one each time; to be destroyed
// by the caller, like `pending` itself. Also CANCELLED; INVALID_ARGUMENT where `pending` is of
// another family.
PAGEJIT_API pagejit_status pagejit_kernel_wait(const pagejit_pending* pending,
                                               pagejit_kernel** kernel, pagejit_error* error);
// Makes the kernel for `target` and stores it in the cache, whatever the options say of compiling;
// needs no driver and no GPU. `info` may be null. INVALID_ARGUMENT (the spec), UNSUPPORTED (the
// spec or the target), COMPILER_UNAVAILABLE, COMPILE_FAILED.
PAGEJIT_API pagejit_status pagejit_kernel_precompile(pagejit_engine* engine,
                                                     const pagejit_kernel_spec* spec,
                                                     const pagejit_target* target,
                                                     pagejit_kernel_info* info,
                                                     pagejit_error* error);
// The source that it would compile. INVALID_ARGUMENT, UNSUPPORTED.
PAGEJIT_API pagejit_status pagejit_kernel_render(const pagejit_engine* engine,
                                                 const pagejit_kernel_spec* spec,
                                                 const pagejit_target* target, char* buffer,
                                                 size_t buffer_size, size_t* length,
                                                 pagejit_error* error);
// Another handle of the same kernel, with a life of its own.
PAGEJIT_API pagejit_status pagejit_kernel_copy(const pagejit_kernel* kernel, pagejit_kernel** copy,
                                               pagejit_error* error);
// Null is legal. Whoever is inside a call goes on; work that was launched is waited for before
// the module is unloaded.
PAGEJIT_API pagejit_status pagejit_kernel_destroy(pagejit_kernel* kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_kernel_get_info(const pagejit_kernel* kernel,
                                                   pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_kernel_get_spec(const pagejit_kernel* kernel,
                                                   pagejit_kernel_spec* spec, pagejit_error* error);

// Enqueues one launch on `stream`. Never allocates, locks, looks anything up or reads device
// memory on success; safe during stream capture. The current context must belong to the device of
// the prepare; prepare once in each context. num_seqs 0 launches nothing. INVALID_ARGUMENT,
// WORKSPACE, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_kernel_launch(const pagejit_kernel* kernel,
                                                 const pagejit_attention_args* args,
                                                 pagejit_stream stream, pagejit_error* error);

// By the counts of a launch's arguments, no pointer is looked at: the splits that launch uses
// where args->num_splits is 0, at least 1; and the bytes of workspace that it needs. 1 and 0 where
// num_seqs or num_kv_heads is below 1; a launch's upper limits are not checked.
PAGEJIT_API pagejit_status pagejit_kernel_choose_num_splits(const pagejit_kernel* kernel,
                                                            const pagejit_attention_args* args,
                                                            int32_t* num_splits,
                                                            pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_kernel_workspace_bytes(const pagejit_kernel* kernel,
                                                          const pagejit_attention_args* args,
                                                          size_t* bytes, pagejit_error* error);
// The same by numbers; not where the spec's queries are shared. max_seq_len in tokens, the upper
// bound as in the arguments; below 1 nothing is split. num_splits 0 = as chosen.
PAGEJIT_API pagejit_status pagejit_kernel_choose_num_splits_for(
    const pagejit_kernel* kernel, int32_t num_seqs, int32_t num_kv_heads, int64_t max_seq_len,
    int32_t* num_splits, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_kernel_workspace_bytes_for(
    const pagejit_kernel* kernel, int32_t num_seqs, int32_t num_kv_heads, int64_t max_seq_len,
    int32_t num_splits, size_t* bytes, pagejit_error* error);
// Bytes that are enough for every launch that leaves num_splits to the library: a few MB.
PAGEJIT_API pagejit_status pagejit_kernel_max_workspace_bytes(const pagejit_kernel* kernel,
                                                              size_t* bytes, pagejit_error* error);
// Enqueues the one-time initialisation of a workspace: of its header and counters, the first
// 262,400 bytes; none is smaller. WORKSPACE where it is null, smaller than that or not 256-byte
// aligned; DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_kernel_workspace_init(const pagejit_kernel* kernel,
                                                         void* workspace, size_t workspace_bytes,
                                                         pagejit_stream stream,
                                                         pagejit_error* error);
// Synchronises `stream` and reads what debug kernels reported in this workspace: OK, or
// DEVICE_CHECK_FAILED with the first bad value and its place. The report is cleared. WORKSPACE
// where it is null or misaligned, or nothing is reported and it was not initialised; DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_kernel_read_debug_report(const pagejit_kernel* kernel,
                                                            void* workspace, pagejit_stream stream,
                                                            pagejit_error* error);

#ifdef __cplusplus
}
#endif
