// The work of this CTA, found from the lengths on the device.
#pragma once

#if PAGEJIT_RAGGED
// Sequence, split and rows of this CTA. False where it has nothing to do.
PAGEJIT_DEVICE bool find_rows(const AttentionParams& params, AttentionWork& work) {
  constexpr int kTileRows = Traits::kTileRows;
  const int index = dev::block_idx_x();
  RowTile found;
#if PAGEJIT_SPLIT_ROW_TILES
  work.split_idx = index / params.num_row_tiles;
  work.row_tile = params.num_row_tiles - 1 - index % params.num_row_tiles;
  if (!find_tile_in_order(params, work.row_tile, found)) return false;
#else
  work.split_idx = 0;
  if (index < params.num_row_tiles) {
    if (!find_row_tile(params, index, found)) return false;
  } else {
    const uint32_t further = static_cast<uint32_t>(index - params.num_row_tiles);
    const uint32_t splits_each = static_cast<uint32_t>(params.num_splits - 1);
    found = {static_cast<int>(further / splits_each), 0};
    work.split_idx = static_cast<int>(1 + further % splits_each);
  }
#endif
  work.seq_idx = found.seq_idx;
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
  work.row_begin = found.tile * kTileRows;
  const int rows_left = work.query_len * kConfig.group_size - work.row_begin;
  work.num_rows = rows_left < kTileRows ? rows_left : kTileRows;
  return work.num_rows > 0;
}

// Whether the sequence's KV tokens may be split: all its rows are in one tile, or every tile is.
PAGEJIT_DEVICE bool may_split(const AttentionWork& work) {
  return kConfig.splits_row_tiles || work.query_len * kConfig.group_size <= Traits::kTileRows;
}

#else
// Sequence, split and rows of this CTA.
PAGEJIT_DEVICE bool find_rows(const AttentionParams&, AttentionWork& work) {
  work.split_idx = dev::block_idx_x();
  work.seq_idx = dev::block_idx_z();
  work.query_begin = work.seq_idx;
  work.query_len = 1;
#if PAGEJIT_GROUP_TILES
  constexpr int kGroupTiles = pagejit_shared::group_tiles(kConfig);
  work.kv_head_idx = dev::block_idx_y() / kGroupTiles;
  work.row_begin = dev::block_idx_y() % kGroupTiles * Traits::kTileRows;
  const int rows_left = kConfig.group_size - work.row_begin;
  work.num_rows = rows_left < Traits::kTileRows ? rows_left : Traits::kTileRows;
#else
  work.row_begin = 0;
  work.num_rows = kConfig.group_size;
#endif
  return true;
}

PAGEJIT_DEVICE bool may_split(const AttentionWork&) {
  return true;
}

#endif
#if !PAGEJIT_BATCH_INVARIANT
// length / split_tokens, rounded up, where that is at most 2^16, without the device's long way to a
// quotient: the approximate one is less than 1 too low, and too high only where rounding up is.
PAGEJIT_DEVICE uint32_t few_splits(uint32_t length, uint32_t split_tokens) {
  const float quotient =
      static_cast<float>(length) * dev::rcp_approx(static_cast<float>(split_tokens));
  uint32_t count = static_cast<uint32_t>(quotient);
  if (count * split_tokens < length) ++count;
  if (count * split_tokens < length) ++count;
  return count;
}

#endif
// Every CTA of a sequence computes the same split from the same lengths, so no plan has to exist
// before the launch. False where this CTA has nothing to do and nothing to write.
PAGEJIT_DEVICE bool find_work(const AttentionParams& params, AttentionWork& work) {
  constexpr int kTileTokens = Traits::kTileTokens;
  work.kv_head_idx = dev::block_idx_y();
  if (!find_rows(params, work)) return false;
  work.seq_len = load_seq_len(params, work.seq_idx);
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
  work.sparse.find(params, work.kv_head_idx, kConfig.group_size,
                   position_of_row(work, work.row_begin));
#endif
  work.num_active_splits = 1;
  work.token_begin = 0;
  work.token_end = work.seq_len;
#if !PAGEJIT_SEES_ALL
  const auto seen = QuerySight(params, work).of_tile(work.row_begin, work.num_rows);
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
  const bool has_cta_each = may_split(work) && num_splits <= params.num_splits;
  work.splits_in_turn = has_cta_each ? 1 : num_splits;
  work.num_active_splits = has_cta_each ? num_splits : 1;
  if (work.split_idx >= work.num_active_splits) return false;
  work.take_split(work.split_idx, kTileTokens);
  return true;
#else
  if (params.num_splits > 1 && may_split(work)) {
    // Unsigned: rounding up cannot overflow below 2^32.
    const uint32_t length = static_cast<uint32_t>(work.token_end - work.token_begin);
    const uint32_t num_tiles = (length + kTileTokens - 1) / kTileTokens;
    const uint32_t whole_tiles =
        pagejit_shared::tiles_per_split(num_tiles, params.num_splits, params.splits_reciprocal) *
        kTileTokens;
    const uint32_t least = static_cast<uint32_t>(params.min_split_tokens);
    const uint32_t split_tokens = whole_tiles < least ? least : whole_tiles;
    const uint32_t skipped = split_tokens * static_cast<uint32_t>(work.split_idx);
    const uint32_t begin = skipped < length ? skipped : length;
    work.num_active_splits = static_cast<int>(few_splits(length, split_tokens));
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
