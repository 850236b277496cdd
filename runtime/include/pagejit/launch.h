// AttentionArgs: the arguments of one launch of an attention kernel. All pointers are device
// pointers unless said otherwise; pagejit reads none of them on the host. Strides count elements
// (not bytes) and are 64-bit. Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pagejit/kernel_handle.h"

namespace pagejit {

// Strides of one KV cache, in elements; the head_size elements of a (block, token, head) row are
// contiguous. NHD cache [num_blocks, block_size, num_kv_heads, head_size]:
// {block_size*num_kv_heads*head_size, num_kv_heads*head_size, head_size}. HND cache [num_blocks,
// num_kv_heads, block_size, head_size]: {num_kv_heads*block_size*head_size, head_size,
// block_size*head_size}; V's have head_size_v. Each must be a multiple of 16 bytes, so that rows
// are copied 16 bytes at a time; where a row of 8-bit elements is no multiple of 16 bytes
// (head_size 8, 24, 40, ...), of 8 bytes: such rows are copied 8 bytes at a time, which takes twice
// the instructions. Of int4 they count elements too, two to a byte: rows are copied 16 bytes at a
// time where head_size is a multiple of 32, 8 where it is one of 16 (16, 48, 80, ...), else 4, and
// strides are multiples of as many bytes. The spec's kv_alignment may ask for less. Where the
// spec's kv_layout is vLLM's, `token` is not looked at: K and V are packed within a block and head.
struct KvStrides {
  int64_t block = 0;
  int64_t token = 0;
  int64_t head = 0;
};

// Block-sparse attention, as vLLM's PagedAttention has it. The keys of a sequence form sparse
// blocks of block_size tokens, which have nothing to do with KV blocks. A query token in sparse
// block q (at position p of its sequence: p / block_size) sees those of sparse block k if k > q -
// local_blocks, or if (k + offset) % vert_stride == 0, where the offset depends on the head:
//   head_sliding_step >= 0: (tp_rank * num_heads + head) * head_sliding_step + 1
//   head_sliding_step < 0: (tp_rank * num_kv_heads + KV head) * -head_sliding_step + 1
// with the numbers of heads of this launch. Blocks behind the query's own are local, so what is
// causal has to be said by the spec.
struct BlockSparseArgs {
  int32_t local_blocks = 0;       // at least 0; 1 is the query's own block alone
  int32_t vert_stride = 1;        // [1, 65536]; 1: all are seen
  int32_t block_size = 64;        // tokens: [1, 65536]
  int32_t head_sliding_step = 0;  // 0: the same blocks for all heads
  int32_t tp_rank = 0;            // this GPU's place among those that share the heads, at least 0

  bool operator==(const BlockSparseArgs&) const = default;
};

struct AttentionArgs {
  // [num_query_tokens, num_kv_heads * group_size, head_size], innermost stride 1. 16-byte aligned,
  // strides multiples of 8. Where the spec's queries are one, token i is sequence i's.
  const void* q = nullptr;
  int64_t q_stride_token = 0;
  int64_t q_stride_head = 0;

  // Caches as described by KvStrides. Aligned to the spec's kv_alignment, 16 bytes. K and V may lie
  // in one allocation, interleaved. Where the spec is latent, k_cache alone: [num_blocks,
  // block_size, head_size]; v_cache and v_scale are null, and v_strides is not looked at. Where its
  // kv_layout is kDsMla too, [num_blocks, block_size, kDsMlaRowBytes], with strides in bytes, and
  // k_scale is null: the rows hold their scales.
  const void* k_cache = nullptr;
  const void* v_cache = nullptr;
  KvStrides k_strides;
  KvStrides v_strides;
  // Where the spec's q_dtype or kv_dtype has 8 bits or 4, f32 device memory, positive and finite:
  // an element's value is its code's times the scale. q_scale[0] for all of q; k_scale[i *
  // kv_scale_stride] and v_scale[i * kv_scale_stride] for KV head i: with stride 0 one scale for
  // all.
  const float* q_scale = nullptr;
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
  int64_t kv_scale_stride = 0;
  // Where the spec has token_scales, instead of kv_scale_stride: k_scale and v_scale hold one for
  // each row of K and V, by these strides in floats. [num_blocks, block_size, num_kv_heads]:
  // {block_size*num_kv_heads, num_kv_heads, 1}. In line behind rows of head_size elements: k_scale
  // is k_cache + head_size bytes (int4: half of that), and the strides are a fourth of K's (int4:
  // an eighth). Without blocks, `token` and `head` hold.
  KvStrides k_scale_strides;
  KvStrides v_scale_strides;
  // Number of blocks in the caches; used only by debug kernels to check block ids. 0 = not checked.
  int64_t num_blocks = 0;

  // Where the spec's kv_table is blocks:
  // int32 [num_seqs, max_blocks_per_seq], row stride block_table_stride >= max_blocks_per_seq.
  // Entries at or beyond ceil(seq_len / block_size) may hold anything.
  const int32_t* block_table = nullptr;
  int64_t block_table_stride = 0;
  int32_t max_blocks_per_seq = 0;

  // int32 [num_seqs]: tokens in the cache per sequence, the query tokens included. A query token
  // that sees no key has out = 0, lse = -inf.
  const int32_t* seq_lens = nullptr;

  // Where kv_table is CSR, instead of block_table and seq_lens: the blocks of sequence i are
  // kv_indices[kv_indptr[i]] to kv_indices[kv_indptr[i + 1] - 1], and the last of them holds
  // kv_last_block_len[i] tokens, 1 to block_size (ignored where there is no block). int32
  // [num_seqs + 1], [kv_indptr[num_seqs]] and [num_seqs].
  const int32_t* kv_indptr = nullptr;
  const int32_t* kv_indices = nullptr;
  const int32_t* kv_last_block_len = nullptr;
  // Where kv_table is contiguous, instead of block_table and seq_lens: the tokens of sequence i are
  // the rows [kv_start_loc[i], kv_start_loc[i + 1]) of K and V, [num_tokens, num_kv_heads,
  // head_size] by k_strides.token, k_strides.head and the same of V. int32 [num_seqs + 1].
  const int32_t* kv_start_loc = nullptr;
  // Where kv_table is slots or positions: each query token is a sequence of its own here, and sees
  // the tokens of its list, int32 [num_seqs, max_list_len] with token_list_stride elements from one
  // list to the next, at least max_list_len. Entries in any order; a negative one is no token, and
  // a token named twice counts twice. An entry is the token's slot in the cache, block * block_size
  // + place in the block, below 2^31; or its position in its sequence, whose blocks stand in row
  // query_seqs[i] of block_table, int32 [num_seqs] (null: in row i). seq_lens[i] entries of list i
  // are looked at; null: max_list_len of each. A list without a token gives out = 0, lse = -inf.
  const int32_t* token_lists = nullptr;
  int64_t token_list_stride = 0;
  int32_t max_list_len = 0;
  const int32_t* query_seqs = nullptr;

  // Where queries are not one: int32 [num_seqs + 1], from 0 on, not decreasing: sequence i has
  // the query tokens [query_start_loc[i], query_start_loc[i + 1]), none or any number, and
  // query_start_loc[num_seqs] <= num_query_tokens; rows of q and out behind that are not touched.
  // The last query token of a sequence stands at its last KV token. num_query_tokens: [0, INT32_MAX
  // / group_size]. Else ignored.
  const int32_t* query_start_loc = nullptr;
  int32_t num_query_tokens = 0;
  // Where causality is per sequence: uint8 [num_seqs], not 0 = causal.
  const uint8_t* causal_flags = nullptr;

  // As q, but with head_size_v elements. 16-byte aligned, strides multiples of 8.
  void* out = nullptr;
  int64_t out_stride_token = 0;
  int64_t out_stride_head = 0;
  // Where the spec's out_dtype has 8 bits: f32 [1] in device memory, positive and finite. The
  // result is divided by it and rounded to nearest even; what lies beyond the range becomes the
  // greatest value.
  const float* out_scale = nullptr;

  // Optional f32 [num_query_tokens, num_kv_heads * group_size], contiguous: natural log of the sum
  // of exp(score) over the keys that are seen, where a score is what the softmax gets (scaled,
  // capped, biased); a sink takes part in the sum. Null: not written.
  float* lse = nullptr;

  // Where the spec has a window: a query token at position p sees the keys [p - window_left, p +
  // window_right] and no others. Negative: no limit on that side.
  int32_t window_left = -1;
  int32_t window_right = -1;
  // Where the spec is chunked: a query token at position p sees the keys of its own chunk,
  // [p - p % chunk_size, p - p % chunk_size + chunk_size), as far as causality allows. Positive.
  int32_t chunk_size = 0;
  // Where the spec has custom_mask: bits, packed from the lowest of each byte on, the format of
  // FlashInfer's packed custom mask. Those of sequence i start at byte custom_mask_indptr[i]; bit q
  // * seq_len + k says whether its query token q sees its key k, as far as causality and windows
  // let it. uint8 [custom_mask_indptr[num_seqs]] and int32 [num_seqs + 1].
  const uint8_t* custom_mask = nullptr;
  const int32_t* custom_mask_indptr = nullptr;
  // Where the spec has bidirectional_ranges: int32 [num_seqs, max_bidirectional_ranges, 2], with
  // bidirectional_ranges_stride elements from one sequence to the next, at least twice
  // max_bidirectional_ranges, or 0 for the same ranges in all sequences. Pairs [begin, end) of
  // positions in the sequence (vLLM's mm_prefix_range names the last position instead of end); one
  // with begin >= end is empty, others may overlap and reach beyond the sequence. A query token at
  // a position inside of a range sees all keys of that range too, whatever causality, window or
  // chunk say. ranges_within_window: whatever causality says, but no key that its window or chunk
  // hides. The custom mask hides keys of ranges like any others. Null is legal for 0 ranges.
  const int32_t* bidirectional_ranges = nullptr;
  int64_t bidirectional_ranges_stride = 0;
  int32_t max_bidirectional_ranges = 0;
  bool ranges_within_window = false;
  // Where the spec is block_sparse.
  BlockSparseArgs block_sparse;
  // Where the spec has soft_cap: positive and finite.
  float soft_cap = 0.0f;
  // Where the spec has alibi: f32 [num_kv_heads * group_size]; slope * (key position - query
  // position) is added to the score.
  const float* alibi_slopes = nullptr;
  // Where the spec has qq_bias, as trees of speculated tokens need it: f32 [num_seqs, rows,
  // columns] by these strides in elements, innermost 1, rows and columns for the longest sequence
  // of query tokens at least. Stride of a sequence 0: one matrix for all, vLLM's [q, q]. What query
  // token i of a sequence gets at query token j of the same, where that is a key: bias[i][j] is
  // added to the scaled and capped score, beside ALiBi's; keys before the query tokens get nothing.
  // -inf hides the key, +inf and NaN are not allowed. Entries of keys that are hidden anyway may
  // hold anything.
  const float* qq_bias = nullptr;
  int64_t qq_bias_stride_seq = 0;
  int64_t qq_bias_stride_row = 0;
  // Where the spec has sinks: f32 [num_kv_heads * group_size], logits.
  const float* sinks = nullptr;

  int32_t num_seqs = 0;  // [0, 65535]; 0 launches nothing
  // [1, 65535]; where queries are one and a KV head's group takes several tiles of rows, [1, 65535
  // / tiles].
  int32_t num_kv_heads = 0;
  // Softmax scale, usually 1/sqrt(head_size). Finite.
  float scale = 0.0f;

  // Upper bound of what seq_lens will hold while this launch (or a graph that captured it) is used;
  // it only steers the number of splits, a longer sequence is still computed right. 0:
  // max_blocks_per_seq * block_size; without a block table it is not known, and nothing is split.
  int32_t max_seq_len = 0;
  // Splits of the KV sequence per (sequence, KV head): the launch's grid. [0, 512]; 0: chosen by
  // the library. More than 1 only for up to 65,536 merge units (up to 16 rows of one KV head and
  // one sequence, or one tile of rows where queries are shared). A batch-invariant kernel divides
  // sequences at multiples of 2,048 tokens whatever this is; where a sequence has more splits than
  // the grid, one CTA does them in turn.
  int32_t num_splits = 0;

  // Device memory of at least workspace_bytes(...), 256-byte aligned, initialised once by
  // workspace_init; null is legal where workspace_bytes is 0. One workspace serves one stream at a
  // time.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

}  // namespace pagejit
