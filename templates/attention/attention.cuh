// Paged attention over ragged queries, split-KV in one launch.
//
// A CTA serves a tile of rows of one (sequence, KV head) over one split of its tokens; see
// ../README.md for the schedule and the counts. K and V rows leave global memory once for all rows
// of the tile.
#pragma once

// Threads of a token group meet where one's copies become the others' input.
PAGEJIT_DEVICE void sync_group(int token_group) {
  if constexpr (kConfig.row_warps == 1) {
    dev::sync_warp();
  } else if constexpr (kConfig.token_groups == 1) {
    dev::sync_cta();
  } else {
    // Barrier 0 is the CTA's.
    dev::sync_named(1 + token_group, kConfig.row_warps * 32);
  }
}

// Streams this CTA's tokens through the running softmax of each warp.
PAGEJIT_DEVICE void attend(const AttentionParams& params, const AttentionWork& work,
                           AttentionShared& shared, OnlineSoftmax& softmax, int token_group,
                           int row_warp) {
  constexpr int kStages = kConfig.num_stages;
  KvStream stream(params, work, shared.u.ring[token_group], token_group, row_warp);

  const FirstBlocks first_blocks(stream);
  stream.clear_pad();

  Query query;
  query.load(QuerySource(params, work, kConfig.group_size), shared, row_warp);
  const ScoreChange change(params, work, row_warp);
#if PAGEJIT_CUSTOM_MASK
  const CustomMask custom_mask(params, work, row_warp);
#endif
  const float scale_log2 = score_scale_log2(params, work);

  int block = first_blocks.of_tile(0);
  // The first kStages - 1 rounds only fill the ring.
  for (int tile = 1 - kStages; tile < stream.num_tiles(); ++tile) {
    if (tile >= 0) {
#if PAGEJIT_ONE_STAGE
      sync_group(token_group);  // all warps are done with the tile before
#else
      // Groups of copies so far: 2 per tile for tile + kStages - 1 tiles. K of this one is number
      // 2 * tile, so all but the newest 2 * (kStages - 1) - 1 must be there.
      dev::cp_async_wait<2 * (kStages - 1) - 1>();
      // K of this tile is there for all warps, and all are done with the tile before.
      sync_group(token_group);
#endif
    }
    stream.issue(tile + kStages - 1, block);
    if (tile < 0) {
      block = first_blocks.of_tile(tile + kStages);
      continue;
    }
    block = stream.find_block(tile + kStages);
#if PAGEJIT_ONE_STAGE
    dev::cp_async_wait<1>();     // all but V of this tile
    sync_group(token_group);  // K of this tile is there for all warps
#endif

    const KvStage& stage = stream.next_stage();
    const int first_token = stream.first_token(tile);
    const bool sees = change.sees(first_token);
#if PAGEJIT_KV_F32
    uint32_t p[Traits::kTokenTiles][kConfig.row_tiles][kTerms][2];
#else
    uint32_t p[Traits::kTokenTiles][kConfig.row_tiles][2];
#endif
    if (sees) {
      Scores scores;
#if PAGEJIT_CUSTOM_MASK
      CustomMask::Words mask_words;  // on their way while the scores are computed
      custom_mask.load(mask_words, first_token);
      compute_scores(scores, stage, query);
      change.apply(scores, first_token, custom_mask, mask_words);
#else
      compute_scores(scores, stage, query);
      change.apply(scores, first_token);
#endif
#if PAGEJIT_TOKEN_SCALES
      softmax.step(scores, scale_log2, stage, p);
#else
      softmax.step(scores, scale_log2, p);
#endif
    }

    // Now tile + kStages tiles; V of this one is number 2 * tile + 1.
    dev::cp_async_wait<2 * (kStages - 1)>();
    sync_group(token_group);  // V of this tile is there for all warps
    if (sees) softmax.accumulate(p, stage);
  }
  softmax.finish();
}

// One split: its tokens, then its rows into the result or the workspace.
PAGEJIT_DEVICE void serve_split(const AttentionParams& params, const AttentionWork& work,
                                AttentionShared& shared) {
  const int warp = dev::thread_idx() / 32;
  const int token_group = warp / kConfig.row_warps;
  const int row_warp = warp % kConfig.row_warps;
  OnlineSoftmax softmax;
  softmax.clear();
  attend(params, work, shared, softmax, token_group, row_warp);

  const AttentionOutput output(params, work);
  MergeBuffer& merge = shared.u.merge;
  const int num_units = output.num_units();
  // Each unit's token groups, then the splits of the units where this one is the last to arrive:
  // after all arrivals, so that no other CTA waits for this one's merging.
  uint32_t units_to_merge = 0;
#pragma unroll 1
  for (int turn = 0; turn < 2 * num_units; ++turn) {
    const bool of_splits = turn >= num_units;
    // Each split starts with another unit, so that splits which finish together are last at
    // different units.
    const int unit = (turn + work.split_idx) % num_units;
    if (!of_splits) {
      dev::sync_cta();  // the ring, or the unit before, has been read by all
      stage_unit(merge, softmax, unit, token_group, row_warp);
      dev::sync_cta();  // the unit is there for all
    } else if ((units_to_merge >> unit & 1) == 0) {
      continue;
    }
#if PAGEJIT_BATCH_INVARIANT
    merge_unit(output, merge, shared.totals, work, unit, of_splits);
#else
    merge_unit(output, merge, work, unit, of_splits);
#endif
    if (!of_splits && work.num_active_splits > 1 &&
        arrive_last_split(params, output, work, unit, merge.is_last_split)) {
      units_to_merge |= 1u << unit;
    }
  }
}

PAGEJIT_DEVICE void attention(const AttentionParams& params) {
  static_assert(sizeof(AttentionShared) == kConfig.shared_bytes,
                "host and device disagree on shared memory");
  auto& shared = *reinterpret_cast<AttentionShared*>(dev::dynamic_shared());

#if PAGEJIT_DEBUG
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
#endif
  AttentionWork work;
  if (!find_work(params, work)) return;

#if PAGEJIT_BATCH_INVARIANT
  while (true) {
    serve_split(params, work, shared);
    if (!work.take_next_split(Traits::kTileTokens)) break;
    dev::sync_cta();  // the merge buffer, where the ring will be, has been read by all
    // Else q, masks and addresses would stay in registers while splits are merged, and spill.
    work.seq_idx = dev::opaque(work.seq_idx);
    work.query_begin = dev::opaque(work.query_begin);
    work.row_begin = dev::opaque(work.row_begin);
  }
#else
  serve_split(params, work, shared);
#endif
}
