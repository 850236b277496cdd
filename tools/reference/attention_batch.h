// AttentionBatch: the inputs of one launch, made at random on the host so that mistakes
// show: every element that a kernel must not use is NaN (tails of blocks, blocks and heads of
// others, gaps between strides), every unused entry of the block table is absurd, and the output
// lies between guards. Not the launch itself: see tools/check/check.h. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pagejit/launch.h"
#include "pagejit/spec.h"
#include "tools/reference/attention_reference.h"
#include "tools/reference/element_buffer.h"

namespace pagejit {

enum class CacheLayout : uint8_t {
  kNhd = 0,          // K, V: [num_blocks, block_size, num_kv_heads, head_size]
  kHnd = 1,          // K, V: [num_blocks, num_kv_heads, block_size, head_size]
  kInterleaved = 2,  // one allocation [num_blocks, 2, block_size, num_kv_heads, head_size]
  kLayered = 3,  // one allocation [num_blocks, 3 layers, 2, num_kv_heads, block_size, head_size];
                 // the middle layer
  kPadded = 4,   // K as NHD, V as HND, with different gaps after each head, token and block
};
std::string_view cache_layout_name(CacheLayout layout);

// The scores scale * q.k. In the regimes other than kNormal, q.k is exact in float32 in any order
// of summation (for the default scale; where the types have 8 bits, q.k of the elements without
// their scales), so that large scores alone do not excuse an error.
enum class LogitRegime : uint8_t {
  kNormal = 0,  // variance 1
  kHigh = 1,    // all above 5e4
  kLow = 2,     // all below -5e4
  kMixed = 3,   // each token one of the two
};
std::string_view logit_regime_name(LogitRegime regime);

// Positions [begin, end) of a sequence; empty where begin >= end.
struct PositionRange {
  int begin = 0;
  int end = 0;
};

struct BatchOptions {
  KernelSpec spec;
  int num_kv_heads = 1;
  std::vector<int> seq_lens;  // tokens
  // Query tokens per sequence where the spec's queries are few or many; empty: one each.
  std::vector<int> query_lens;
  // Rows of q and out behind the last sequence's, as padded graphs have them: not to be touched.
  int unused_queries = 0;
  int window_left = -1;  // where the spec has a window
  int window_right = -1;
  int chunk_size = 64;  // where the spec is chunked
  // Where the spec is block_sparse.
  BlockSparseArgs block_sparse = {
      .local_blocks = 2, .vert_stride = 3, .block_size = 24, .head_sliding_step = 1};
  // Where the spec has bidirectional_ranges: pairs [begin, end) for each sequence; none: drawn.
  std::vector<std::vector<PositionRange>> bidirectional_ranges;
  bool ranges_within_window = false;
  bool shared_qq_bias = false;  // where the spec has qq_bias: one matrix for all sequences
  float soft_cap = 0;           // where the spec has one; 0: 1.5, which bends scores of variance 1
  uint64_t seed = 1;
  CacheLayout layout = CacheLayout::kNhd;
  LogitRegime logits = LogitRegime::kNormal;
  // With kNormal: q, K and V are uniform within +-1/sqrt(head_size) and all scales are 1, as in
  // vLLM's test of PagedAttention.
  bool vllm_values = false;
  // Where kv_dtype has 8 bits and no token_scales: a scale for each KV head; false: one for all.
  bool per_head_scales = false;
  // Each sequence uses the blocks of the longest one before it for its whole leading blocks.
  bool share_prefix = false;
  // Gaps between the rows of q, out and the block table; false: packed.
  bool padded_rows = true;
  // Blocks per row of the block table. 0: what the longest sequence needs, and three more.
  int max_blocks_per_seq = 0;
  // Where kv_table is slots or positions: entries of a list. 0: a little more than the longest
  // sequence, of which a list names about three tokens of four. 1: no token.
  int list_len = 0;
  // Elements from one cache block to the next on the device. 0: as the layout has it. For caches
  // beyond 2^31 elements.
  int64_t device_block_stride = 0;
  // 0: 1 / sqrt(head_size).
  float scale = 0;
};

// A cache allocation. `data` is what the layout has, [num_blocks, block_extent] elements; on the
// device its blocks lie device_block_stride >= block_extent elements apart.
struct KvAllocation {
  ElementBuffer data;
  int64_t block_extent = 0;
  int64_t device_block_stride = 0;
};

// Where K or V lies: the element `offset` of `allocations[allocation]`.
struct KvPlace {
  int allocation = 0;
  int64_t offset = 0;
  KvStrides strides;  // on the host; on the device strides.block is device_block_stride
  // The elements of a token and head: chunks of so many, so far from each other. 0: one chunk.
  int chunk_elements = 0;
  int64_t chunk_stride = 0;

  // Of element i from the first one of its token and head.
  int64_t element_offset(int i) const {
    return chunk_elements == 0 ? i : i / chunk_elements * chunk_stride + i % chunk_elements;
  }
};

struct AttentionBatch {
  static constexpr uint32_t kLseSentinel =
      0xffffa5a5u;  // a NaN in f32: what lse holds before the launch
  // q and out are aligned to 16 bytes and to no more, as is allowed.
  static constexpr int64_t kGuardBytes = 144;
  static constexpr int64_t kLseGuard = 17;

  BatchOptions options;
  int num_seqs = 0;
  int num_heads = 0;
  int num_queries = 0;     // query tokens of all sequences
  int num_query_rows = 0;  // and those of no sequence behind them
  float scale = 0;
  std::vector<int32_t> query_start_loc;     // [num_seqs + 1]
  std::vector<uint8_t> causal_flags;        // [num_seqs]: 1, 0, 1, ...
  std::vector<uint8_t> custom_mask;         // about three bits of four set
  std::vector<int32_t> custom_mask_indptr;  // [num_seqs + 1]
  // [num_seqs, bidirectional_ranges_stride]: max_bidirectional_ranges pairs, then one of
  // everything, which does not count.
  std::vector<int32_t> bidirectional_ranges;
  int64_t bidirectional_ranges_stride = 0;
  int32_t max_bidirectional_ranges = 0;
  // By these strides; one entry of eight is -inf. NaN behind the query tokens, and, unless one
  // matrix serves all sequences, where causality, windows and ranges hide the key.
  std::vector<float> qq_bias;
  int64_t qq_bias_stride_seq = 0;
  int64_t qq_bias_stride_row = 0;
  std::vector<float> alibi_slopes;  // [num_heads]
  std::vector<float> sinks;         // [num_heads]
  float soft_cap = 0;

  // q and out: kGuardBytes, then [num_query_rows, num_heads, head_size] with strides, then a guard.
  // What q does not hold is ElementBuffer::nan_code(), and all of out is sentinel_code().
  ElementBuffer q;
  ElementBuffer out;
  int64_t q_stride_token = 0;
  int64_t q_stride_head = 0;
  int64_t out_stride_token = 0;
  int64_t out_stride_head = 0;
  std::vector<float> lse;  // guard, [num_query_rows, num_heads], guard

  // Of elements of 8 bits, else empty: one for q, one for out, and of K and V one for all heads or
  // one for every kv_scale_stride elements, with NaN between them. Where the spec has token_scales,
  // those of the rows of K and V, with NaN where there is no token: by strides of their own, or in
  // line in the caches where kv_alignment is 4.
  std::vector<float> q_scale;
  std::vector<float> k_scale;
  std::vector<float> v_scale;
  std::vector<float> out_scale;
  int64_t kv_scale_stride = 0;
  KvStrides k_scale_strides;
  KvStrides v_scale_strides;

  std::vector<KvAllocation> allocations;  // one or two
  KvPlace k_place;
  KvPlace v_place;
  int64_t num_blocks = 0;

  std::vector<int32_t> block_table;  // [num_seqs, block_table_stride]
  int64_t block_table_stride = 0;
  int32_t max_blocks_per_seq = 0;
  std::vector<int32_t> seq_lens;
  // The same as CSR, and where the rows of each sequence are without blocks.
  std::vector<int32_t> kv_indptr;
  std::vector<int32_t> kv_indices;
  std::vector<int32_t> kv_last_block_len;
  std::vector<int32_t> kv_start_loc;
  // Where kv_table is slots or positions: the entries, with absurd ones behind the last, and how
  // many; lists of sequence i name tokens of its own, whose blocks stand in row query_seqs[i].
  std::vector<int32_t> token_lists;  // [num_seqs, token_list_stride]
  std::vector<int32_t> list_lens;
  std::vector<int32_t> query_seqs;
  int64_t token_list_stride = 0;
  int32_t max_list_len = 0;
  std::vector<std::vector<uint8_t>> is_listed;  // of each sequence its tokens

  // The elements themselves, per sequence [num_kv_heads, seq_len, head_size], of V head_size_v,
  // widened but without their scales: for dense_attention. And where the spec has token_scales
  // those, [num_kv_heads, seq_len].
  std::vector<std::vector<float>> dense_k;
  std::vector<std::vector<float>> dense_v;
  std::vector<std::vector<float>> dense_k_scale;
  std::vector<std::vector<float>> dense_v_scale;

  // Of a query token, counted over all sequences; of sequence i where each has one.
  int64_t out_index(int query, int head) const {
    return guard_elements(out.type()) + query * out_stride_token + head * out_stride_head;
  }
  int64_t q_index(int query, int head) const {
    return guard_elements(q.type()) + query * q_stride_token + head * q_stride_head;
  }
  int head_size_v() const { return value_head_size(options.spec); }
  // The scales of token_scales lie behind the elements of their row.
  bool has_inline_scales() const {
    return options.spec.token_scales && options.spec.kv_alignment == kInlineScaleBytes;
  }
  static constexpr int kInlineScaleBytes = 4;
  static int64_t guard_elements(DataType type) { return kGuardBytes / data_type_bytes(type); }
  // What dense_attention needs beside dense_k and dense_v: 1 where there is no scale.
  ElementScales scales_of(int kv_head) const;
  // The sequence of a query token.
  int seq_of(int query) const;
  bool is_causal(int seq) const;
  // The KV tokens of its sequence that a query token sees, [begin, end), and its own position.
  struct Sight {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t position = 0;
  };
  Sight sight_of(int query) const;
  // Of the keys [sight.begin, sight.end) of that, for one query head: 1 = seen, by ranges, the
  // custom mask and the sparse blocks. Empty where the spec has none of them: all are seen.
  std::vector<uint8_t> seen_by(int query, int head, const Sight& sight) const;
  // The bias of the same keys. Empty where the spec has none.
  std::vector<float> bias_of(int query, const Sight& sight) const;
  // By the definition, which is slow: what sight_of() and seen_by() go by where there are ranges.
  bool sees_by_definition(int query, int64_t key) const;
  // Bytes of K and V of all tokens of all sequences: what one launch must read.
  int64_t valid_kv_bytes() const;

  // The arguments with host pointers into this batch, for paged_attention. Valid while the batch
  // lives unmoved.
  AttentionArgs host_args() const;
};

// kInvalidArgument for an invalid spec, a negative length, or more blocks than a table row holds.
Result<AttentionBatch> make_attention_batch(const BatchOptions& options);

// The same batch with shorter sequences: their first seq_lens[i] tokens. The caches stay as they
// are, so what was a token beyond the new length is not NaN. kInvalidArgument where a length is
// negative or longer than before.
Result<AttentionBatch> shorten(const AttentionBatch& batch, const std::vector<int>& seq_lens);

// Whether everything around the results still is what make_attention_batch() put there. `out` and
// `lse` are the buffers after the launch. Where lse was not wanted it must be untouched as a whole.
Status check_untouched(const AttentionBatch& batch, const ElementBuffer& out,
                       const std::vector<float>& lse, bool with_lse);

}  // namespace pagejit
