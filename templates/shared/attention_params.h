// What host and device agree on for the attention kernel: its configuration (compile time) and its
// parameters (launch). Included by the host library and inlined into every rendered source; plain
// C++20.
#pragma once

#include "templates/shared/attention_grid.h"
#include "templates/shared/attention_workspace.h"
#include "templates/shared/elements.h"

namespace pagejit_shared {

// A row is one query token of one query head. The rows of a sequence and KV head are numbered token
// by token: row = query token * group_size + query head of the group.

// Where results must not depend on the batch, splits begin at multiples of so many tokens: 16 splits
// of 32k tokens, and a split of 128 bf16 elements is 1 MiB, some 20 us of one SM of an H200, beside
// which its start and merge are short. A multiple of all tiles.
constexpr int kFixedSplitTokens = 2048;

// Which keys a query token may see, by position: the last query token of a sequence stands at the
// last KV token.
enum class Causality : int {
  kNone,         // all of the sequence
  kCausal,       // up to its own position
  kPerSequence,  // one or the other, by a flag per sequence
};

// How the KV tokens of a sequence are found.
enum class KvTable : int {
  kBlocks,      // block_table, a row per sequence, and seq_lens
  kCsr,         // kv_indptr, kv_indices, kv_last_block_len
  kContiguous,  // kv_start_loc: token i of the sequence is row kv_start_loc + i
  kSlots,       // token_lists: each query token's tokens, by block * block_size + place in the block
  kPositions,   // token_lists by positions, which block_table turns into slots
};

// How one attention kernel is built. Chosen by the planner; a constant in the rendered source.
//
// A CTA serves a tile of rows of one (sequence, KV head) over one split of its KV tokens. Its warps
// form `token_groups` groups of `row_warps` warps; a group owns a slice of each tile's tokens and a
// ring of `num_stages` stages in shared memory, its warps split the rows.
//
// Where is_latent that holds for the scores. Warps then share the probabilities, and each adds up
// all rows of the tile for elements of V of its own.
struct AttentionConfig {
  Element q_type;
  Element kv_type;
  Element out_type;  // f16, bf16, f32 or e4m3
  bool has_fp8_convert;  // the target converts pairs of fp8 to f16 in one instruction
  bool is_ragged;        // query_start_loc gives each sequence's query tokens; else one each
  bool splits_row_tiles;  // where is_ragged: every row tile is split, else sequences of one tile
  Causality causality;   // where is_ragged; one query token sees all
  KvTable kv_table;
  KvLayout kv_layout;
  bool is_latent;         // V is the first head_size_v elements of K's rows, which are copied once
  bool has_token_scales;  // K and V have a scale for each token and KV head
  int kv_alignment;       // bytes that pointers and strides of K and V are multiples of
  bool has_window;       // a sliding window: window_left and window_right hold
  bool has_chunks;       // a query token sees the keys of its own chunk: chunk_size holds
  bool has_custom_mask;  // a bit for each query token and key
  bool has_bidirectional_ranges;  // query tokens in a range of positions see all of it
  bool is_block_sparse;  // only some blocks of keys are seen
  bool has_soft_cap;     // scores = soft_cap * tanh(scores / soft_cap)
  bool has_alibi;        // scores += slope of the head * (key position - query position)
  bool has_qq_bias;      // scores += bias of (query token, query token that is the key)
  bool has_sinks;        // one more logit per head, without a value
  int head_size;         // elements of q and K, multiple of 8
  int head_size_padded;  // head_size rounded up to 16, the depth of an mma step, or to two of them
                         // where K and V are int4; the pad is zero in shared memory
  int head_size_v;       // the same of V and out
  int head_size_v_padded;
  int block_size;        // tokens per KV block
  int group_size;        // query heads per KV head
  int token_groups;      // groups of warps that split the tokens of a tile
  int row_warps;         // warps of a group, which split the rows
  int row_tiles;         // tiles of 8 rows per warp (the n of mma.m16n8k16)
  int group_tokens;      // tokens of one group in one stage: 16 or 32
  int num_stages;        // stages of the cp.async ring
  bool q_in_registers;   // query fragments live in registers, else they are read from shared memory
                         // in each tile
  int min_ctas_per_sm;   // for __launch_bounds__
  int shared_bytes;      // dynamic shared memory; the device asserts that its struct has this size
  bool is_batch_invariant;  // where is_ragged: splits have kFixedSplitTokens
  bool debug;            // check block ids, lengths and the workspace
};

// Each query token sees all keys of its sequence.
PAGEJIT_HOST_DEVICE constexpr bool sees_all(const AttentionConfig& c) {
  return c.causality == Causality::kNone && !c.has_window && !c.has_chunks;
}
// Ranges let query tokens see more than they would without.
PAGEJIT_HOST_DEVICE constexpr bool uses_bidirectional_ranges(const AttentionConfig& c) {
  return c.has_bidirectional_ranges && !sees_all(c);
}
// Scores are scaled before they are changed, else where they become powers of 2.
PAGEJIT_HOST_DEVICE constexpr bool changes_scores(const AttentionConfig& c) {
  return c.has_soft_cap || c.has_alibi || c.has_qq_bias;
}

PAGEJIT_HOST_DEVICE constexpr bool has_token_lists(const AttentionConfig& c) {
  return c.kv_table == KvTable::kSlots || c.kv_table == KvTable::kPositions;
}

// Where K and V are f32, each operand of the products is the sum of so many bf16.
constexpr int kF32Terms = 3;
PAGEJIT_HOST_DEVICE constexpr bool has_f32_kv(const AttentionConfig& c) {
  return c.kv_type == Element::kFloat32;
}
// Terms of an operand of the products.
PAGEJIT_HOST_DEVICE constexpr int operand_terms(const AttentionConfig& c) {
  return has_f32_kv(c) ? kF32Terms : 1;
}
// A row of K is one of KvLayout::kDsMla. Its codes are multiplied with q in f16, and sums of a group
// with its scale; the rotated part in bf16. V is the codes times their scales in bf16.
PAGEJIT_HOST_DEVICE constexpr bool has_ds_mla_rows(const AttentionConfig& c) {
  return c.kv_layout == KvLayout::kDsMla;
}
// The products are computed in bf16, else in f16: K, V, q and the probabilities. Where
// has_ds_mla_rows(), all but those of codes and q.
PAGEJIT_HOST_DEVICE constexpr bool computes_in_bf16(const AttentionConfig& c) {
  return c.kv_type == Element::kBFloat16 || has_f32_kv(c) || has_ds_mla_rows(c);
}
// Of K and V: bytes of what memory is addressed by, an element or two int4; how many of these a row
// of so many elements has.
PAGEJIT_HOST_DEVICE constexpr int kv_bytes(const AttentionConfig& c) {
  return element_bytes(c.kv_type);
}
PAGEJIT_HOST_DEVICE constexpr int kv_units(const AttentionConfig& c, int num_elements) {
  return num_elements / elements_per_unit(c.kv_type);
}
// As kv_units(), of a row of K in the cache, and in shared memory with its pad.
PAGEJIT_HOST_DEVICE constexpr int key_row_units(const AttentionConfig& c) {
  return has_ds_mla_rows(c) ? kDsMlaRowBytes : kv_units(c, c.head_size);
}
PAGEJIT_HOST_DEVICE constexpr int padded_key_row_units(const AttentionConfig& c) {
  return has_ds_mla_rows(c) ? kDsMlaRowBytes : kv_units(c, c.head_size_padded);
}
// q is converted where it is loaded; else its bits are the operands.
PAGEJIT_HOST_DEVICE constexpr bool converts_q(const AttentionConfig& c) {
  return c.q_type != c.kv_type || kv_bytes(c) == 1;
}
// Each row of q, what codes are multiplied with, is brought into the range of f16 by a power of two.
PAGEJIT_HOST_DEVICE constexpr bool scales_q_rows(const AttentionConfig& c) {
  return (!computes_in_bf16(c) || has_ds_mla_rows(c)) &&
         (c.q_type == Element::kBFloat16 || c.q_type == Element::kFloat32);
}
// Scales of whole tensors or heads: factors of all scores and of the result.
PAGEJIT_HOST_DEVICE constexpr bool has_kv_head_scales(const AttentionConfig& c) {
  return kv_bytes(c) == 1 && !c.has_token_scales && !has_ds_mla_rows(c);
}
// Bytes that one cp.async of a row of K or V moves: kv_alignment, 16 at most, or 8 or 4 where rows are
// no multiple of more. Where K and V have different head sizes both are multiples of 16.
PAGEJIT_HOST_DEVICE constexpr int kv_copy_bytes(const AttentionConfig& c) {
  const int row = key_row_units(c) * kv_bytes(c);
  const int divides_rows = row % 16 == 0 ? 16 : row % 8 == 0 ? 8 : 4;
  return c.kv_alignment < divides_rows ? c.kv_alignment : divides_rows;
}
// The same for V where its tokens follow each other: tokens of one block.
PAGEJIT_HOST_DEVICE constexpr int v_copy_bytes(const AttentionConfig& c) {
  if (c.kv_layout != KvLayout::kVllm) return kv_copy_bytes(c);
  return c.block_size * kv_bytes(c) % 16 == 0 ? 16 : 8;
}
// The tokens of a stage lie at equal distances: in one block, since stages begin at multiples of their
// size where nothing is hidden at the front, or without blocks.
PAGEJIT_HOST_DEVICE constexpr bool has_even_rows(const AttentionConfig& c) {
  if (c.kv_layout == KvLayout::kVllm) return false;
  if (c.kv_table == KvTable::kContiguous) return true;
  if (has_token_lists(c)) return false;
  return c.block_size % c.group_tokens == 0 && !c.has_window && !c.has_chunks;
}

// Elements from one row to the next in shared memory: an odd number of 16-byte chunks, so that the
// eight rows of an ldmatrix matrix fall on eight different bank groups whatever the head size.
PAGEJIT_HOST_DEVICE constexpr int shared_row_pitch(int num_elements, int bytes_each) {
  return ((num_elements * bytes_each / 16) | 1) * 16 / bytes_each;
}
// Floats from one row to the next where accumulators are merged: 4 more than a multiple of 16, so
// that the 8 x 4 (dimension, row) pairs that a warp stores at once fall on 32 different banks.
PAGEJIT_HOST_DEVICE constexpr int merge_row_pitch(int head_size_v_padded) {
  return head_size_v_padded + 4;
}

// Rows of a CTA, whether they exist or not.
PAGEJIT_HOST_DEVICE constexpr int tile_rows(const AttentionConfig& c) {
  return c.row_warps * c.row_tiles * 8;
}
// CTAs that share the rows of a group where each sequence has one query token.
PAGEJIT_HOST_DEVICE constexpr int group_tiles(const AttentionConfig& c) {
  return c.is_ragged ? 1 : (c.group_size + tile_rows(c) - 1) / tile_rows(c);
}
// Rows of a CTA that can exist, and so have partials.
PAGEJIT_HOST_DEVICE constexpr int partial_rows(const AttentionConfig& c) {
  return c.is_ragged || group_tiles(c) > 1 ? tile_rows(c) : c.group_size;
}
PAGEJIT_HOST_DEVICE constexpr int num_warps(const AttentionConfig& c) {
  return c.token_groups * c.row_warps;
}
// Tiles of 16 elements of V that a warp adds up, at most.
PAGEJIT_HOST_DEVICE constexpr int warp_value_tiles(const AttentionConfig& c) {
  const int tiles = c.head_size_v_padded / 16;
  return c.is_latent ? (tiles + num_warps(c) - 1) / num_warps(c) : tiles;
}
// Partial results of a row in a CTA, each over the tokens of a group.
PAGEJIT_HOST_DEVICE constexpr int partial_groups(const AttentionConfig& c) {
  return c.is_latent ? 1 : c.token_groups;
}
// Rows that are merged at a time.
PAGEJIT_HOST_DEVICE constexpr int merge_rows(const AttentionConfig& c) {
  return tile_rows(c) < kMergeUnitRows ? tile_rows(c) : kMergeUnitRows;
}

// Dynamic shared memory: the larger of the K/V ring and the merge buffers that take its place, then
// q where it is not in registers. The device asserts that its struct has this size.
PAGEJIT_HOST_DEVICE constexpr int kv_stage_bytes(const AttentionConfig& c) {
  const int bytes = kv_bytes(c);
  const int k = c.group_tokens * shared_row_pitch(padded_key_row_units(c), bytes);
  const int v = c.is_latent                         ? 0
                : c.kv_layout == KvLayout::kRows
                    ? c.group_tokens * shared_row_pitch(kv_units(c, c.head_size_v_padded), bytes)
                    : c.head_size_v_padded * shared_row_pitch(c.group_tokens, bytes);
  return (k + v) * bytes + (c.has_token_scales ? 2 * c.group_tokens * 4 : 0) +
         (has_token_lists(c) ? c.group_tokens * 4 : 0);
}
PAGEJIT_HOST_DEVICE constexpr int kv_ring_bytes(const AttentionConfig& c) {
  return c.token_groups * c.num_stages * kv_stage_bytes(c);
}
PAGEJIT_HOST_DEVICE constexpr int group_partials_bytes(const AttentionConfig& c) {
  const int accumulators =
      partial_groups(c) * merge_rows(c) * merge_row_pitch(c.head_size_v_padded) * 4;
  const int statistics = partial_groups(c) * merge_rows(c) * 8;
  return (accumulators + statistics + 15) / 16 * 16;
}
// Before the partial results lies a flag, in 16 bytes.
constexpr int kMergeFlagBytes = 16;
// A thread's part of one split: 4 accumulators, maximum and sum.
PAGEJIT_HOST_DEVICE constexpr int split_batch_bytes(const AttentionConfig& c, int num_splits) {
  return num_splits * num_warps(c) * 32 * (4 * 4 + 8);
}
// Splits whose partial results a CTA fetches at once: what the memory there is anyway has room for,
// up to more than it ever pays to split a sequence into.
PAGEJIT_HOST_DEVICE constexpr int splits_at_once(const AttentionConfig& c) {
  const int ring = kv_ring_bytes(c) - kMergeFlagBytes;
  const int groups = group_partials_bytes(c);
  const int count = (ring > groups ? ring : groups) / split_batch_bytes(c, 1);
  return count < 2 ? 2 : count > 64 ? 64 : count;
}
PAGEJIT_HOST_DEVICE constexpr int merge_buffer_bytes(const AttentionConfig& c) {
  const int groups = group_partials_bytes(c);
  const int splits = split_batch_bytes(c, splits_at_once(c));
  return kMergeFlagBytes + (groups > splits ? groups : splits);
}
PAGEJIT_HOST_DEVICE constexpr int query_buffer_bytes(const AttentionConfig& c) {
  if (c.q_in_registers) return 0;
  const int rows = operand_terms(c) * tile_rows(c) * shared_row_pitch(c.head_size_padded, 2) * 2;
  return rows + (scales_q_rows(c) ? (tile_rows(c) * 4 + 15) / 16 * 16 : 0);
}
// What a CTA keeps of the splits that it does in turn: accumulators, and statistics twice, those read
// and those written.
PAGEJIT_HOST_DEVICE constexpr int split_totals_bytes(const AttentionConfig& c) {
  if (!c.is_batch_invariant) return 0;
  return tile_rows(c) * (merge_row_pitch(c.head_size_v_padded) * 4 + 2 * 8);
}
// What the warps of a CTA tell each other where is_latent: probabilities [tokens of the tile][rows], a
// number for each group and row, a factor for each row, a flag for each warp of a group.
PAGEJIT_HOST_DEVICE constexpr int latent_exchange_bytes(const AttentionConfig& c) {
  if (!c.is_latent) return 0;
  const int p = c.token_groups * c.group_tokens * shared_row_pitch(tile_rows(c), 2) * 2;
  return (p + (c.token_groups + 1) * tile_rows(c) * 4 + c.row_warps * 4 + 15) / 16 * 16;
}
PAGEJIT_HOST_DEVICE constexpr int shared_bytes(const AttentionConfig& c) {
  const int ring = kv_ring_bytes(c);
  const int merge = merge_buffer_bytes(c);
  return (ring > merge ? ring : merge) + query_buffer_bytes(c) + split_totals_bytes(c) +
         latent_exchange_bytes(c);
}

// Block-sparse attention: from the sparse block q the sparse block k is seen if k > q -
// local_blocks, or if k + offset + head * |head_step| is a multiple of vert_stride; head is the KV
// head where head_step is negative.
struct BlockSparseParams {
  int local_blocks;  // [0, 2^31)
  int vert_stride;   // [1, 65536]
  int block_size;    // [1, 65536] tokens
  int offset;        // [0, vert_stride)
  int head_step;     // (-vert_stride, vert_stride)
};

// A negative softmax scale is a positive one and -q: the greatest score stays the greatest logit.
// Never 0, since the score of a token that takes no part, -inf, must stay -inf: the least normal
// number makes all others equal as well.
constexpr float kLeastScale = 0x1p-126f;
// Scores that are changed are natural logarithms then, others logarithms of base 2 at once.
constexpr float kLog2E = 1.44269504088896341f;
PAGEJIT_HOST_DEVICE constexpr float score_scale(const AttentionConfig& c, float scale) {
  const float magnitude = scale < 0.0f ? -scale : scale;
  const float of_scores = magnitude * (changes_scores(c) ? 1.0f : kLog2E);
  return of_scores < kLeastScale ? kLeastScale : of_scores;
}
PAGEJIT_HOST_DEVICE constexpr unsigned query_sign_bits(float scale) {
  return scale < 0.0f ? 0x80008000u : 0u;
}

// Strides count elements; those of K and V units of kv_bytes().
struct AttentionParams {
  const void* q;
  const void* k_cache;
  const void* v_cache;
  void* out;
  float* lse;  // [query tokens, query heads]; null: not wanted
  const int* block_table;
  const int* seq_lens;
  const int* kv_indptr;               // [num_seqs + 1] where KvTable::kCsr: into kv_indices
  const int* kv_indices;              // block ids
  const int* kv_last_block_len;       // [num_seqs]: tokens in the last block, 1 to block_size
  const int* kv_start_loc;            // [num_seqs + 1] where KvTable::kContiguous
  const int* token_lists;             // [num_seqs, max_list_len] where has_token_lists()
  const int* query_seqs;              // [num_seqs]: rows of block_table; null: their own numbers
  const int* query_start_loc;         // [num_seqs + 1] where is_ragged
  const unsigned char* causal_flags;  // [num_seqs] where Causality::kPerSequence
  const unsigned char* custom_mask;   // where has_custom_mask; bit query * seq_len + key
  const int* custom_mask_indptr;      // [num_seqs + 1]: bytes
  const int* bidirectional_ranges;    // [num_seqs, num_bidirectional_ranges, 2]: [begin, end)
  const float* qq_bias;               // where has_qq_bias: [sequence, query token, key's]
  const float* alibi_slopes;          // [query heads] where has_alibi
  const float* sinks;                 // [query heads] where has_sinks
  const float* q_scale;               // [1] where q has 8 bits
  const float* k_scale;               // by kv_scale_stride, where K and V have 8 or 4 bits, or by row
  const float* v_scale;
  const float* out_scale;             // [1] where out has 8 bits
  void* workspace;
  long long q_stride_token, q_stride_head;
  long long k_stride_block, k_stride_token, k_stride_head;
  long long v_stride_block, v_stride_token, v_stride_head;
  long long out_stride_token, out_stride_head;
  long long block_table_stride;
  long long token_list_stride;
  long long kv_scale_stride;  // from one KV head's scale to the next; 0: one for all
  // Where has_token_scales.
  long long k_scale_stride_block, k_scale_stride_token, k_scale_stride_head;
  long long v_scale_stride_block, v_scale_stride_token, v_scale_stride_head;
  long long bidirectional_ranges_stride;  // of a sequence
  long long qq_bias_stride_seq, qq_bias_stride_row;
  long long num_blocks;  // debug kernels: legal block ids are [0, num_blocks); 0 = unknown
  int max_blocks_per_seq;
  int max_list_len;
  int num_seqs;
  int num_kv_heads;
  int num_query_tokens;  // debug kernels where is_ragged: rows of q and out
  int num_row_tiles;     // where is_ragged: see row_tiles_bound(); at least 1
  int num_splits;
  unsigned splits_reciprocal;  // split_reciprocal(num_splits)
  int min_split_tokens;  // a split has at least this many tokens (a multiple of the tile), but for
                         // the last
  int window_left;       // where has_window: keys before and behind a query token's own position
  int window_right;      // that it sees; negative: all
  int chunk_size;        // where has_chunks: tokens, positive
  int num_bidirectional_ranges;  // of a sequence, the empty ones included
  int ranges_within_window;      // not 0: ranges show nothing that the window or chunk hides
  BlockSparseParams sparse;  // where is_block_sparse
  float score_scale;     // score_scale() of the softmax scale
  unsigned q_sign_bits;  // of two elements of 16 bits: set where the softmax scale is negative
  float soft_cap;        // where has_soft_cap: positive
};

}  // namespace pagejit_shared
