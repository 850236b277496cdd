// The main loop where K's rows hold V: this CTA's tokens, copied once, through the running softmax of
// the CTA.
#pragma once

// A group of which no row of the warp sees a token takes part in the exchange all the same.
PAGEJIT_DEVICE void hide_all(Scores& scores) {
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[i][j][e] = kMinusInfinity;
    }
  }
}

#if PAGEJIT_KV_LISTS
// What the list does not name has a row of zeros.
PAGEJIT_DEVICE void hide_unlisted(Scores& scores, const KvStage& stage) {
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (stage.is_listed[i * 16 + score_token(dev::lane_idx() / 4, half != 0)] != 0) continue;
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) {
        scores[i][j][half * 2] = kMinusInfinity;
        scores[i][j][half * 2 + 1] = kMinusInfinity;
      }
    }
  }
}

#endif
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
  const float scale_log2 = score_scale_log2(params, work);

  int block = first_blocks.of_tile(0);
  // The first kStages - 1 rounds only fill the ring.
  for (int tile = 1 - kStages; tile < stream.num_tiles(); ++tile) {
    if (tile >= 0) {
      // Groups of copies so far: one for each of tile + kStages - 1 tiles.
      dev::cp_async_wait<kStages - 2>();
      // This tile is there for all warps, and all are done with the one before.
      dev::sync_cta();
    }
    stream.issue(tile + kStages - 1, block);
    if (tile < 0) {
      block = first_blocks.of_tile(tile + kStages);
      continue;
    }
    block = stream.find_block(tile + kStages);

    const int stage = stream.next_stage();
    const int first_token = stream.first_token(tile);
    Scores scores;
    if (change.sees(first_token)) {
      compute_scores(scores, shared.u.ring[token_group][stage], query);
      change.apply(scores, first_token);
#if PAGEJIT_KV_LISTS
      hide_unlisted(scores, shared.u.ring[token_group][stage]);
#endif
    } else {
      hide_all(scores);
    }
    softmax.step(scores, scale_log2, shared.exchange, token_group, row_warp);
    softmax.accumulate(shared.u.ring, stage, shared.exchange);
  }
  softmax.finish(shared.exchange, token_group, row_warp);
}
