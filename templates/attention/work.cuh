// What one CTA does: its sequence, KV head, rows and range of KV tokens, found from the lengths on
// the device; and what a debug kernel says when it finds something wrong.
#pragma once

constexpr float kLog2E = 1.44269504088896341f;

#if PAGEJIT_DEBUG
// The first finder's report stays; thread-safe across the grid.
PAGEJIT_DEVICE void report_debug(const AttentionParams& params, pagejit_shared::DebugCode code,
                                 int seq_idx, int position, int64_t value) {
  auto* header = static_cast<pagejit_shared::WorkspaceHeader*>(params.workspace);
  if (dev::atomic_cas(&header->debug_code, pagejit_shared::kDebugOk, code) !=
      pagejit_shared::kDebugOk) {
    return;
  }
  dev::store_global(&header->debug_seq_idx, seq_idx);
  dev::store_global(&header->debug_position, position);
  dev::store_global(&header->debug_value, static_cast<long long>(value));
}

#endif
struct AttentionWork {
  int seq_idx;
  int kv_head_idx;
  int split_idx;
  int seq_len;      // KV tokens of the sequence
  int query_begin;  // its first query token in q and out
  int query_len;    // its query tokens
  int row_begin;    // this CTA's rows are [row_begin, row_begin + num_rows)
  int num_rows;
#if PAGEJIT_SPLIT_ROW_TILES
  int row_tile;  // of the launch
#endif
  int num_active_splits;  // splits that have tokens; 0 or 1 where there is none
  int token_begin;
  int token_end;  // this CTA's KV tokens are [token_begin, token_end)
#if PAGEJIT_BATCH_INVARIANT
  int range_begin;     // those that its rows see: [range_begin, range_end)
  int range_end;
  int splits_in_turn;  // that this CTA does, one after the other
  int turn;            // the one it is at
#endif
#if PAGEJIT_QK_SCALE
  float qk_scale;  // of a product of an element of q and one of K
#endif
#if PAGEJIT_KV_HEAD_SCALES
  float v_scale;
#endif
#if PAGEJIT_BLOCK_SPARSE
  SparseTiles sparse;
#endif

  PAGEJIT_DEVICE bool has_tokens() const { return token_begin < token_end; }
#if PAGEJIT_BATCH_INVARIANT

  // Splits, and tiles within them, begin at multiples of their sizes, counted from the sequence's first
  // token: what a row sees is divided in the same way whatever the other rows see.
  PAGEJIT_DEVICE int first_split() const {
    return range_begin / pagejit_shared::kFixedSplitTokens;
  }
  PAGEJIT_DEVICE int count_splits() const {
    if (range_begin >= range_end) return 1;
    return (range_end - 1) / pagejit_shared::kFixedSplitTokens - first_split() + 1;
  }
  // `split` counts from the first one that has tokens.
  PAGEJIT_DEVICE void take_split(int split, int tile_tokens) {
    token_begin = (first_split() + split) * pagejit_shared::kFixedSplitTokens;
    token_end = range_end - token_begin > pagejit_shared::kFixedSplitTokens
                    ? token_begin + pagejit_shared::kFixedSplitTokens
                    : range_end;
    if (token_begin < range_begin) token_begin = range_begin - range_begin % tile_tokens;
  }
  // False after the last one.
  PAGEJIT_DEVICE bool take_next_split(int tile_tokens) {
    if (++turn >= splits_in_turn) return false;
    take_split(turn, tile_tokens);
    return true;
  }
#endif
};

// The softmax scale without its sign, which is q's. Never 0, since the score of a token that takes
// no part, -inf, must stay -inf: the least normal number makes all others equal as well.
PAGEJIT_DEVICE float positive_scale(const AttentionParams& params,
                                    [[maybe_unused]] const AttentionWork& work) {
  constexpr float kLeast = 0x1p-126f;
  float scale = params.scale < 0.0f ? -params.scale : params.scale;
#if PAGEJIT_QK_SCALE
  scale *= work.qk_scale;
#endif
  return scale < kLeast ? kLeast : scale;
}

// What scores are multiplied with where they become powers of 2.
PAGEJIT_DEVICE float score_scale_log2([[maybe_unused]] const AttentionParams& params,
                                      [[maybe_unused]] const AttentionWork& work) {
#if PAGEJIT_CHANGE_SCORES
  return kLog2E;  // scores are scaled before they are changed
#else
  return positive_scale(params, work) * kLog2E;
#endif
}

// A row's query token, counted from the sequence's first, and its query head, from the group's
// first.
struct RowPlace {
  int token;
  int head;
};

template <AttentionConfig C>
PAGEJIT_DEVICE RowPlace place_of_row(int row) {
#if PAGEJIT_RAGGED
  return {row / C.group_size, row % C.group_size};
#else
  return {0, row};
#endif
}

#if PAGEJIT_ALIBI || PAGEJIT_BLOCK_SPARSE
// The position of a row's query token among the KV tokens: the last query token stands at the last
// one. Negative where there are more query tokens than KV tokens.
template <AttentionConfig C>
PAGEJIT_DEVICE int position_of_row(const AttentionWork& work, int row) {
  return work.seq_len - work.query_len + place_of_row<C>(row).token;
}

#endif
#if !PAGEJIT_SEES_ALL
template <AttentionConfig C>
struct QuerySight;  // query_sight.cuh

#endif
// The sequence's length by its table.
template <AttentionConfig C>
PAGEJIT_DEVICE int load_table_len(const AttentionParams& params, int seq_idx) {
#if PAGEJIT_KV_CSR
  const int num_blocks = dev::load_global_nc(params.kv_indptr + seq_idx + 1) -
                         dev::load_global_nc(params.kv_indptr + seq_idx);
  const int in_last = dev::load_global_nc(params.kv_last_block_len + seq_idx);
  return num_blocks == 0 ? 0 : (num_blocks - 1) * C.block_size + in_last;
#elif PAGEJIT_KV_CONTIGUOUS
  return dev::load_global_nc(params.kv_start_loc + seq_idx + 1) -
         dev::load_global_nc(params.kv_start_loc + seq_idx);
#else
  return dev::load_global_nc(params.seq_lens + seq_idx);
#endif
}

// The sequence's length. A debug kernel reports a length that its table cannot hold and takes 0 for
// it.
template <AttentionConfig C>
PAGEJIT_DEVICE int load_seq_len(const AttentionParams& params, int seq_idx) {
  const int seq_len = load_table_len<C>(params, seq_idx);
#if PAGEJIT_DEBUG
  const int64_t capacity = C.kv_table == pagejit_shared::KvTable::kBlocks
                               ? static_cast<int64_t>(params.max_blocks_per_seq) * C.block_size
                               : 0x7fffffff;
  if (seq_len < 0 || seq_len > capacity) {
    if (dev::thread_idx() == 0) {
      report_debug(params, pagejit_shared::kDebugBadSeqLen, seq_idx, 0, seq_len);
    }
    return 0;
  }
#endif
  return seq_len < 0 ? 0 : seq_len;
}

#if PAGEJIT_RAGGED
// The last sequence whose row tiles begin at or before `row_tile`; -1 where there is none. The tile
// may lie behind its last row. All lanes of a warp search together: one round of loads for 32
// sequences, two for 1,024.
template <AttentionConfig C>
PAGEJIT_DEVICE int find_sequence(const AttentionParams& params, int row_tile) {
  constexpr int kTileRows = AttentionTraits<C>::kTileRows;
  int begin = 0;
  int count = params.num_seqs;
  while (count > 1) {
    const int step = (count + 31) / 32;
    const int probe = begin + dev::lane_idx() * step;
    bool is_before = false;
    if (probe < begin + count) {
      const int query_begin = dev::load_global_nc(params.query_start_loc + probe);
      is_before = pagejit_shared::first_row_tile(probe, query_begin, C.group_size, kTileRows) <=
                  row_tile;
    }
    const int num_before = dev::count_lanes(is_before);
    if (num_before == 0) return -1;  // only where query_start_loc does not begin with 0
    const int end = begin + count;
    begin += (num_before - 1) * step;
    count = end - begin < step ? end - begin : step;
  }
  return begin;
}

// Sequence, split and rows of this CTA. False where it has nothing to do.
template <AttentionConfig C>
PAGEJIT_DEVICE bool find_rows(const AttentionParams& params, AttentionWork& work) {
  constexpr int kTileRows = AttentionTraits<C>::kTileRows;
  const int index = dev::block_idx_x();
#if PAGEJIT_SPLIT_ROW_TILES
  constexpr bool is_row_tile = true;
  work.split_idx = index / params.num_row_tiles;
  work.row_tile = params.num_row_tiles - 1 - index % params.num_row_tiles;
  int row_tile = work.row_tile;
  work.seq_idx = find_sequence<C>(params, row_tile);
  if (work.seq_idx < 0) return false;
#else
  const bool is_row_tile = index < params.num_row_tiles;
  int row_tile = 0;
  if (is_row_tile) {
    // From the last tile on; see the grid in attention_params.h.
    row_tile = params.num_row_tiles - 1 - index;
    work.seq_idx = find_sequence<C>(params, row_tile);
    work.split_idx = 0;
    if (work.seq_idx < 0) return false;
  } else {
    const uint32_t further = static_cast<uint32_t>(index - params.num_row_tiles);
    const uint32_t splits_each = static_cast<uint32_t>(params.num_splits - 1);
    work.seq_idx = static_cast<int>(further / splits_each);
    work.split_idx = static_cast<int>(1 + further % splits_each);
  }
#endif
  work.query_begin = dev::load_global_nc(params.query_start_loc + work.seq_idx);
  const int query_end = dev::load_global_nc(params.query_start_loc + work.seq_idx + 1);
  work.query_len = query_end - work.query_begin;
#if PAGEJIT_DEBUG
  if (work.query_len < 0 || work.query_begin < 0 || query_end > params.num_query_tokens) {
    if (dev::thread_idx() == 0) {
      report_debug(params, pagejit_shared::kDebugBadQueryRange, work.seq_idx, work.seq_idx + 1,
                   query_end);
    }
    return false;
  }
#endif
  if (is_row_tile) {
    row_tile -=
        pagejit_shared::first_row_tile(work.seq_idx, work.query_begin, C.group_size, kTileRows);
  }
  work.row_begin = row_tile * kTileRows;
  const int rows_left = work.query_len * C.group_size - work.row_begin;
  work.num_rows = rows_left < kTileRows ? rows_left : kTileRows;
  return work.num_rows > 0;
}

// Whether the sequence's KV tokens may be split: all its rows are in one tile, or every tile is.
template <AttentionConfig C>
PAGEJIT_DEVICE bool may_split(const AttentionWork& work) {
  return C.splits_row_tiles || work.query_len * C.group_size <= AttentionTraits<C>::kTileRows;
}

#else
// Sequence, split and rows of this CTA.
template <AttentionConfig C>
PAGEJIT_DEVICE bool find_rows(const AttentionParams&, AttentionWork& work) {
  work.split_idx = dev::block_idx_x();
  work.seq_idx = dev::block_idx_z();
  work.query_begin = work.seq_idx;
  work.query_len = 1;
  work.row_begin = 0;
  work.num_rows = C.group_size;
  return true;
}

template <AttentionConfig C>
PAGEJIT_DEVICE bool may_split(const AttentionWork&) {
  return true;
}

#endif
// Every CTA of a sequence computes the same split from the same lengths, so no plan has to exist
// before the launch. False where this CTA has nothing to do and nothing to write.
template <AttentionConfig C>
PAGEJIT_DEVICE bool find_work(const AttentionParams& params, AttentionWork& work) {
  constexpr int kTileTokens = AttentionTraits<C>::kTileTokens;
  work.kv_head_idx = dev::block_idx_y();
  if (!find_rows<C>(params, work)) return false;
  work.seq_len = load_seq_len<C>(params, work.seq_idx);
#if PAGEJIT_QK_SCALE
  work.qk_scale = 1.0f;
#endif
#if PAGEJIT_KV_HEAD_SCALES
  const int64_t scale_offset = work.kv_head_idx * static_cast<int64_t>(params.kv_scale_stride);
  work.qk_scale = dev::load_global_nc(params.k_scale + scale_offset);
  work.v_scale = dev::load_global_nc(params.v_scale + scale_offset);
#endif
#if PAGEJIT_Q_FP8
  work.qk_scale *= dev::load_global_nc(params.q_scale);
#endif
#if PAGEJIT_BLOCK_SPARSE
  work.sparse.find(params, work.kv_head_idx, C.group_size,
                   position_of_row<C>(work, work.row_begin));
#endif
  work.num_active_splits = 1;
  work.token_begin = 0;
  work.token_end = work.seq_len;
#if !PAGEJIT_SEES_ALL
  const auto seen = QuerySight<C>(params, work).of_tile(work.row_begin, work.num_rows);
  work.token_begin = seen.begin;
  work.token_end = seen.end;
#if PAGEJIT_KV_VLLM
  // Whole copies of V's tokens: what is not seen of the first one is masked.
  work.token_begin &= ~15;
#endif
  if (work.token_begin > work.token_end) work.token_begin = work.token_end;
#endif
#if PAGEJIT_BATCH_INVARIANT
  work.range_begin = work.token_begin;
  work.range_end = work.token_end;
  work.turn = 0;
  const int num_splits = work.count_splits();
  const bool has_cta_each = may_split<C>(work) && num_splits <= params.num_splits;
  work.splits_in_turn = has_cta_each ? 1 : num_splits;
  work.num_active_splits = has_cta_each ? num_splits : 1;
  if (work.split_idx >= work.num_active_splits) return false;
  work.take_split(work.split_idx, kTileTokens);
  return true;
#else
  if (params.num_splits > 1 && may_split<C>(work)) {
    // Unsigned: rounding up cannot overflow below 2^32.
    const uint32_t length = static_cast<uint32_t>(work.token_end - work.token_begin);
    const uint32_t num_splits = static_cast<uint32_t>(params.num_splits);
    const uint32_t even = (length + num_splits - 1) / num_splits;
    const uint32_t whole_tiles = (even + kTileTokens - 1) / kTileTokens * kTileTokens;
    const uint32_t least = static_cast<uint32_t>(params.min_split_tokens);
    const uint32_t split_tokens = whole_tiles < least ? least : whole_tiles;
    const uint32_t skipped = split_tokens * static_cast<uint32_t>(work.split_idx);
    const uint32_t begin = skipped < length ? skipped : length;
    work.num_active_splits = static_cast<int>((length + split_tokens - 1) / split_tokens);
    work.token_begin += static_cast<int>(begin);
    if (length - begin > split_tokens) {
      work.token_end = work.token_begin + static_cast<int>(split_tokens);
    }
  } else if (work.split_idx > 0) {
    return false;
  }
  // Later splits of a short sequence have nothing to do. The first one writes the result of no
  // tokens.
  return work.split_idx == 0 || work.has_tokens();
#endif
}
