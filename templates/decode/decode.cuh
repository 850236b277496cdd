// Paged decode attention: one query token per sequence, split-KV in one launch.
//
// A CTA serves one (sequence, KV head, split); see ../README.md for the schedule and the counts. K
// and V rows leave global memory once for all query heads of the group.
#pragma once

// Threads of a token group meet where one's copies become the others' input.
template <DecodeConfig C>
PAGEJIT_DEVICE void sync_group(int token_group) {
  if constexpr (C.head_warps == 1) {
    dev::sync_warp();
  } else if constexpr (C.token_groups == 1) {
    dev::sync_cta();
  } else {
    // Barrier 0 is the CTA's.
    dev::sync_named(1 + token_group, C.head_warps * 32);
  }
}

// Streams this CTA's tokens through the running softmax of each warp.
template <DecodeConfig C>
PAGEJIT_DEVICE void attend(const DecodeParams& params, const DecodeWork& work,
                           DecodeShared<C>& shared, OnlineSoftmax<C>& softmax, int token_group,
                           int head_warp) {
  using Traits = DecodeTraits<C>;
  constexpr int kStages = C.num_stages;
  KvStream<C> stream(params, work, shared.u.ring[token_group], token_group, head_warp);

  // All block ids of the first tiles at once: one latency, not one per stage.
  KvRowOffsets first_rows[kStages];
#pragma unroll
  for (int tile = 0; tile < kStages; ++tile) first_rows[tile] = stream.locate(tile);
  stream.clear_pad();

  Query<C> query;
  const uint16_t* q = static_cast<const uint16_t*>(params.q) +
                      work.seq_idx * static_cast<int64_t>(params.q_stride_seq) +
                      work.kv_head_idx * static_cast<int64_t>(C.group_size) * params.q_stride_head;
  // A negative scale is a positive one and -q: the greatest score stays the greatest logit.
  const uint32_t sign_bits = params.scale_log2 < 0.0f ? 0x80008000u : 0u;
  query.load(q, params.q_stride_head, sign_bits, shared, head_warp);
  const float scale_log2 = positive_scale(params);

  KvRowOffsets rows = first_rows[0];
  // The first kStages - 1 rounds only fill the ring.
  for (int tile = 1 - kStages; tile < stream.num_tiles(); ++tile) {
    if (tile >= 0) {
      // Groups of copies so far: 2 per tile for tile + kStages - 1 tiles. K of this one is number
      // 2 * tile, so all but the newest 2 * (kStages - 1) - 1 must be there.
      dev::cp_async_wait<2 * (kStages - 1) - 1>();
      // K of this tile is there for all warps, and all are done with the tile before.
      sync_group<C>(token_group);
    }
    stream.issue(tile + kStages - 1, rows);
    if (tile < 0) {
      // A constant index for each round keeps first_rows in registers.
#pragma unroll
      for (int i = 1; i < kStages; ++i) {
        if (tile + kStages == i) rows = first_rows[i];
      }
      continue;
    }
    rows = stream.locate(tile + kStages);

    const KvStage<C>& stage = stream.next_stage();
    Scores<C> scores;
    compute_scores<C>(scores, stage, query);
    uint32_t p[Traits::kTokenTiles][C.head_tiles][2];
    softmax.step(scores, scale_log2, stream.num_valid(tile), p);

    // Now tile + kStages tiles; V of this one is number 2 * tile + 1.
    dev::cp_async_wait<2 * (kStages - 1)>();
    sync_group<C>(token_group);  // V of this tile is there for all warps
    softmax.accumulate(p, stage);
  }
  softmax.finish();
}

template <DecodeConfig C>
PAGEJIT_DEVICE void decode(const DecodeParams& params) {
  using Traits = DecodeTraits<C>;
  static_assert(sizeof(DecodeShared<C>) == C.shared_bytes,
                "host and device disagree on shared memory");
  auto& shared = *reinterpret_cast<DecodeShared<C>*>(dev::dynamic_shared());

  if constexpr (C.debug) {
    auto* header = static_cast<pagejit_shared::WorkspaceHeader*>(params.workspace);
    const uint32_t magic = dev::load_global(&header->magic);
    if (magic != pagejit_shared::kWorkspaceMagic) {
      // Nothing in this memory can be trusted, so there is no compare-and-swap: one thread of the
      // grid writes.
      if (dev::block_idx_x() + dev::block_idx_y() + dev::block_idx_z() + dev::thread_idx() == 0) {
        dev::store_global(&header->debug_value, static_cast<long long>(magic));
        dev::store_global(&header->debug_code,
                          static_cast<int>(pagejit_shared::kDebugBadWorkspace));
      }
      return;
    }
  }

  const DecodeWork work = find_work<C>(params);
  // Later splits of a short sequence have nothing to do. The first one of an empty sequence writes
  // the result of no tokens.
  if (!work.has_tokens() && work.split_idx > 0) return;

  const int warp = dev::thread_idx() / 32;
  const int token_group = warp / C.head_warps;
  const int head_warp = warp % C.head_warps;
  OnlineSoftmax<C> softmax;
  softmax.clear();
  attend<C>(params, work, shared, softmax, token_group, head_warp);

  const DecodeOutput<C> output(params, work);
  MergeBuffer<C>& merge = shared.u.merge;
  constexpr int kUnits = pagejit_shared::merge_units(C.group_size);
  uint32_t units_to_merge = 0;
  for (int i = 0; i < kUnits; ++i) {
    // Each split starts with another unit, so that splits which finish together are last at
    // different units.
    const int unit = (i + work.split_idx) % kUnits;
    dev::sync_cta();  // the ring, or the unit before, has been read by all
    stage_unit<C>(merge, softmax, unit, token_group, head_warp);
    dev::sync_cta();  // the unit is there for all
    merge_token_groups<C>(output, merge, work, unit);
    if (work.num_active_splits > 1 &&
        arrive_last<C>(params, output, work, unit, merge.is_last_split)) {
      units_to_merge |= 1u << unit;
    }
  }
  // After all arrivals, so that no other CTA waits for this one's merging.
  for (int unit = 0; unit < kUnits; ++unit) {
    if (units_to_merge >> unit & 1) merge_splits<C>(output, unit, work.num_active_splits);
  }
}
