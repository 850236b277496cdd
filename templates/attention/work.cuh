// What one CTA does: its sequence, KV head, rows and range of KV tokens; what its rows see; and what
// a debug kernel says when it finds something wrong.
#pragma once

using pagejit_shared::kLog2E;

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

// What scores are multiplied with: positive.
PAGEJIT_DEVICE float score_scale(const AttentionParams& params,
                                 [[maybe_unused]] const AttentionWork& work) {
#if PAGEJIT_QK_SCALE
  const float scale = params.score_scale * work.qk_scale;
  return scale < pagejit_shared::kLeastScale ? pagejit_shared::kLeastScale : scale;
#else
  return params.score_scale;
#endif
}

// What scores are multiplied with where they become powers of 2.
PAGEJIT_DEVICE float score_scale_log2([[maybe_unused]] const AttentionParams& params,
                                      [[maybe_unused]] const AttentionWork& work) {
#if PAGEJIT_CHANGE_SCORES
  return kLog2E;  // scores are scaled before they are changed
#else
  return score_scale(params, work);
#endif
}

// A row's query token, counted from the sequence's first, and its query head, from the group's
// first.
struct RowPlace {
  int token;
  int head;
};

PAGEJIT_DEVICE RowPlace place_of_row(int row) {
#if PAGEJIT_RAGGED
  return {row / kConfig.group_size, row % kConfig.group_size};
#else
  return {0, row};
#endif
}

#if PAGEJIT_ALIBI || PAGEJIT_BLOCK_SPARSE
// The position of a row's query token among the KV tokens: the last query token stands at the last
// one. Negative where there are more query tokens than KV tokens.
PAGEJIT_DEVICE int position_of_row(const AttentionWork& work, int row) {
  return work.seq_len - work.query_len + place_of_row(row).token;
}

#endif
// The sequence's length by its table.
PAGEJIT_DEVICE int load_table_len(const AttentionParams& params, int seq_idx) {
#if PAGEJIT_KV_CSR
  const int num_blocks = dev::load_global_nc(params.kv_indptr + seq_idx + 1) -
                         dev::load_global_nc(params.kv_indptr + seq_idx);
  const int in_last = dev::load_global_nc(params.kv_last_block_len + seq_idx);
  return num_blocks == 0 ? 0 : (num_blocks - 1) * kConfig.block_size + in_last;
#elif PAGEJIT_KV_CONTIGUOUS
  return dev::load_global_nc(params.kv_start_loc + seq_idx + 1) -
         dev::load_global_nc(params.kv_start_loc + seq_idx);
#elif PAGEJIT_KV_LISTS
  // Entries of the query token's list.
  if (params.seq_lens == nullptr) return params.max_list_len;
  return dev::load_global_nc(params.seq_lens + seq_idx);
#else
  return dev::load_global_nc(params.seq_lens + seq_idx);
#endif
}

#if PAGEJIT_DEBUG
// Whether the sequence's table holds its length; reports what is wrong.
PAGEJIT_DEVICE bool check_table(const AttentionParams& params, int seq_idx) {
  pagejit_shared::DebugCode code = pagejit_shared::kDebugOk;
  int position = 0;
  int value = 0;
#if PAGEJIT_KV_CSR || PAGEJIT_KV_CONTIGUOUS
#if PAGEJIT_KV_CSR
  const int* starts = params.kv_indptr + seq_idx;
  constexpr auto kBadStart = pagejit_shared::kDebugBadKvIndptr;
#else
  const int* starts = params.kv_start_loc + seq_idx;
  constexpr auto kBadStart = pagejit_shared::kDebugBadKvStartLoc;
#endif
  const int begin = dev::load_global_nc(starts);
  const int end = dev::load_global_nc(starts + 1);
  if (begin < 0 || end < begin) {
    code = kBadStart;
    position = begin < 0 ? seq_idx : seq_idx + 1;
    value = begin < 0 ? begin : end;
  }
#if PAGEJIT_KV_CSR
  const int in_last = dev::load_global_nc(params.kv_last_block_len + seq_idx);
  if (end > begin && (in_last < 1 || in_last > kConfig.block_size)) {
    code = pagejit_shared::kDebugBadLastBlockLen;
    value = in_last;
  }
#endif
#elif PAGEJIT_KV_LISTS
  const int list_len = load_table_len(params, seq_idx);
  if (list_len < 0 || list_len > params.max_list_len) {
    code = pagejit_shared::kDebugBadListLen;
    value = list_len;
  }
#else
  const int seq_len = dev::load_global_nc(params.seq_lens + seq_idx);
  if (seq_len < 0 ||
      seq_len > static_cast<int64_t>(params.max_blocks_per_seq) * kConfig.block_size) {
    code = pagejit_shared::kDebugBadSeqLen;
    value = seq_len;
  }
#endif
  if (code == pagejit_shared::kDebugOk) return true;
  if (dev::thread_idx() == 0) report_debug(params, code, seq_idx, position, value);
  return false;
}

#endif
// The sequence's length. A debug kernel reports a length that its table cannot hold and takes 0 for
// it.
PAGEJIT_DEVICE int load_seq_len(const AttentionParams& params, int seq_idx) {
#if PAGEJIT_DEBUG
  if (!check_table(params, seq_idx)) return 0;
#endif
  const int seq_len = load_table_len(params, seq_idx);
  return seq_len < 0 ? 0 : seq_len;
}
