// The main loop: K and V of this CTA's tokens through the running softmax of each warp.
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

    const KvStage& stage = shared.u.ring[token_group][stream.next_stage()];
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
