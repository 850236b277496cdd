// From the product K q to what the softmax sees: scores are scaled, capped, biased and masked as far
// as the configuration asks for it.
#pragma once

#if PAGEJIT_SOFT_CAP
// tanh(x) = 1 - 2 / (1 + e^2x): right at both ends, however large x is.
PAGEJIT_DEVICE float tanh_by_exp2(float x) {
  return 1.0f - 2.0f * dev::rcp_approx(1.0f + dev::exp2_approx(x * (2.0f * kLog2E)));
}

#endif
// What becomes of one warp's scores before the softmax.
class ScoreChange {
 public:
  PAGEJIT_DEVICE ScoreChange(const AttentionParams& params, const AttentionWork& work,
                             int row_warp)
      : params_(params),
        work_(work),
#if !PAGEJIT_SEES_ALL && !PAGEJIT_RANGES
        sight_(params, work),
#endif
        warp_row_(work.row_begin + row_warp * Traits::kWarpRows) {
    const int rows_left = work.num_rows - row_warp * Traits::kWarpRows;
    num_rows_ = rows_left < Traits::kWarpRows ? rows_left : Traits::kWarpRows;
#if PAGEJIT_RANGES
    int rows[kLaneRows + 2];
#pragma unroll
    for (int n = 0; n < kLaneRows; ++n) rows[n] = lane_row(n / 2, n % 2);
    rows[kLaneRows] = warp_row_;
    rows[kLaneRows + 1] = warp_row_ + num_rows_ - 1;
    QuerySight(params, work).of_rows(rows, seen_);
#endif
#if PAGEJIT_BLOCK_SPARSE
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int head = work.kv_head_idx * kConfig.group_size + place_of_row(lane_row(j, h)).head;
        residues_[j][h] = seen_residue(params, head, work.kv_head_idx);
#if PAGEJIT_RAGGED
        first_local_[j][h] = first_local_of_row(lane_row(j, h));
#endif
      }
    }
    all_local_ = first_local_of_row(warp_row_ + num_rows_ - 1);
#endif
#if PAGEJIT_ALIBI
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int head = work.kv_head_idx * kConfig.group_size + place_of_row(lane_row(j, h)).head;
        const bool exists = lane_row(j, h) < warp_row_ + num_rows_;
        slopes_[j][h] = exists ? dev::load_global_nc(params.alibi_slopes + head) : 0.0f;
      }
    }
#endif
  }

  // Whether a row of this warp sees one of the tokens from first_token on. Warps of which no row
  // exists only help to copy.
  PAGEJIT_DEVICE bool sees([[maybe_unused]] int first_token) const {
#if PAGEJIT_BLOCK_SPARSE
    if (!work_.sparse.show(params_, first_token, kConfig.group_tokens)) return false;
#endif
#if !PAGEJIT_RAGGED
    return true;
#elif PAGEJIT_SEES_ALL
    return num_rows_ > 0;
#else
    return num_rows_ > 0 && first_token < last_sight().end;
#endif
  }

  // The scores of tokens [first_token, first_token + group_tokens): scale, soft cap, ALiBi, bias,
  // mask. What is masked becomes -inf whatever was added to it.
#if PAGEJIT_CUSTOM_MASK
  PAGEJIT_DEVICE void apply(Scores& scores, int first_token, const CustomMask& custom_mask,
                            const CustomMask::Words& mask_words) const {
#else
  PAGEJIT_DEVICE void apply(Scores& scores, int first_token) const {
#endif
#if PAGEJIT_CHANGE_SCORES
    change(scores, first_token);
#endif
#if PAGEJIT_QQ_BIAS
    if (first_token + kConfig.group_tokens > work_.seq_len - work_.query_len) {
      add_bias(scores, first_token);
    }
#endif
    if (needs_mask(first_token)) mask(scores, first_token);
#if PAGEJIT_CUSTOM_MASK
    custom_mask.hide(scores, first_token, mask_words);
#endif
#if PAGEJIT_BLOCK_SPARSE
    if (static_cast<uint32_t>(first_token) < all_local_) mask_by_blocks(scores, first_token);
#endif
  }

 private:
  // The token of result rows r and r + 8 of tile i, for lanes 4r to 4r + 3.
  PAGEJIT_DEVICE static int lane_token(int first_token, int i, int half) {
    return first_token + i * 16 + score_token(dev::lane_idx() / 4, half);
  }
  // The row of result column 2c + h of tile j, in the sequence.
  PAGEJIT_DEVICE int lane_row(int j, int h) const {
    return warp_row_ + j * 8 + dev::lane_idx() % 4 * 2 + h;
  }

#if !PAGEJIT_SEES_ALL
  // What the warp's first row sees, its last one, and the row of lane_row().
#if PAGEJIT_RANGES
  PAGEJIT_DEVICE VisibleRange first_sight() const { return seen_[kLaneRows]; }
  PAGEJIT_DEVICE VisibleRange last_sight() const { return seen_[kLaneRows + 1]; }
  PAGEJIT_DEVICE VisibleRange lane_sight(int j, int h) const { return seen_[j * 2 + h]; }
#else
  PAGEJIT_DEVICE VisibleRange first_sight() const { return sight_.of_row(warp_row_); }
  PAGEJIT_DEVICE VisibleRange last_sight() const {
    return sight_.of_row(warp_row_ + num_rows_ - 1);
  }
  PAGEJIT_DEVICE VisibleRange lane_sight(int j, int h) const {
    return sight_.of_row(lane_row(j, h));
  }
#endif

#endif
#if PAGEJIT_CHANGE_SCORES
  PAGEJIT_DEVICE void change(Scores& scores, [[maybe_unused]] int first_token) const {
    const float scale = score_scale(params_, work_);
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
          float score = scores[i][j][e] * scale;
#if PAGEJIT_SOFT_CAP
          score = params_.soft_cap * tanh_by_exp2(score * dev::rcp_approx(params_.soft_cap));
#endif
#if PAGEJIT_ALIBI
          const int token = lane_token(first_token, i, e / 2);
          const int distance = token - position_of_row(work_, lane_row(j, e % 2));
          score += slopes_[j][e % 2] * static_cast<float>(distance);
#endif
          scores[i][j][e] = score;
        }
      }
    }
  }

#endif
#if PAGEJIT_QQ_BIAS
  // Adds the bias of the keys that are query tokens of the sequence themselves.
  PAGEJIT_DEVICE void add_bias(Scores& scores, int first_token) const {
    const float* bias =
        params_.qq_bias + work_.seq_idx * static_cast<int64_t>(params_.qq_bias_stride_seq);
    const int first_key = work_.seq_len - work_.query_len;
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = lane_row(j, h);
        const bool row_exists = row < warp_row_ + num_rows_;
        const float* row_bias =
            bias + place_of_row(row).token * static_cast<int64_t>(params_.qq_bias_stride_row);
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int key = lane_token(first_token, i, half) - first_key;
            if (row_exists && key >= 0 && key < work_.query_len) {
              scores[i][j][half * 2 + h] += dev::load_global_nc(row_bias + key);
            }
          }
        }
      }
    }
  }

#endif
  // The same for all lanes. Later rows see at least as far and begin no earlier, so the first row
  // and the last one decide.
  PAGEJIT_DEVICE bool needs_mask(int first_token) const {
    const int end = first_token + kConfig.group_tokens;
#if PAGEJIT_SEES_ALL
    return end > work_.token_end;
#else
    return end > work_.token_end || end > first_sight().end ||
           (QuerySight::kHasBegin && first_token < last_sight().begin);
#endif
  }

  // The score of what a row does not see becomes -inf, its probability 0.
  PAGEJIT_DEVICE void mask(Scores& scores, int first_token) const {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#if !PAGEJIT_SEES_ALL
        const VisibleRange range = lane_sight(j, h);
#endif
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int token = lane_token(first_token, i, half);
            bool is_seen = token < work_.token_end;
#if !PAGEJIT_SEES_ALL
            is_seen &= token < range.end && (!QuerySight::kHasBegin || token >= range.begin);
#endif
            if (!is_seen) scores[i][j][half * 2 + h] = kMinusInfinity;
          }
        }
      }
    }
  }

#if PAGEJIT_BLOCK_SPARSE
  PAGEJIT_DEVICE uint32_t first_local_of_row(int row) const {
    return first_local_token(params_, position_of_row(work_, row));
  }

  // What is neither local nor in a block that the row's head sees.
  PAGEJIT_DEVICE void mask_by_blocks(Scores& scores, int first_token) const {
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t token = static_cast<uint32_t>(lane_token(first_token, i, half));
        const uint32_t residue = token / static_cast<uint32_t>(params_.sparse.block_size) %
                                 static_cast<uint32_t>(params_.sparse.vert_stride);
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
#if PAGEJIT_RAGGED
            const bool is_local = token >= first_local_[j][h];
#else
            const bool is_local = token >= all_local_;
#endif
            if (!is_local && residue != residues_[j][h]) {
              scores[i][j][half * 2 + h] = kMinusInfinity;
            }
          }
        }
      }
    }
  }

#endif
  const AttentionParams& params_;
  const AttentionWork& work_;
#if !PAGEJIT_SEES_ALL && !PAGEJIT_RANGES
  QuerySight sight_;
#endif
  int warp_row_;  // the warp's first row, in the sequence
  int num_rows_;  // of this warp; 0 or less: none
#if PAGEJIT_RANGES
  static constexpr int kLaneRows = kConfig.row_tiles * 2;
  VisibleRange seen_[kLaneRows + 2];  // by the lane's rows, the warp's first and its last one
#endif
#if PAGEJIT_BLOCK_SPARSE
  uint32_t residues_[kConfig.row_tiles][2];
#if PAGEJIT_RAGGED
  uint32_t first_local_[kConfig.row_tiles][2];
#endif
  uint32_t all_local_;  // the tokens from here on are local for all rows of the warp
#endif
#if PAGEJIT_ALIBI
  float slopes_[kConfig.row_tiles][2];
#endif
};
