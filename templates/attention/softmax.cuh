// The online softmax of one warp and the second product: accumulators += V^T p. Fragment places as
// in operands.cuh.
#pragma once

// Running softmax and accumulators of one warp: its rows over the tokens it has seen.
struct OnlineSoftmax {
  float acc[Traits::kValueTiles][kConfig.row_tiles][4];  // [head elements][rows]
#if PAGEJIT_TOKEN_SCALES
  // Rows 2c, 2c+1: what the greatest product of a probability and V's scale has in place of a score,
  // the same in all lanes of a column; and the sum of the probabilities relative to that, of this
  // lane's tokens only until finish().
#else
  // Rows 2c, 2c+1: the greatest score, the same in all lanes of a column; and the sum, of this
  // lane's tokens only until finish().
#endif
  float row_max[kConfig.row_tiles][2];
  float row_sum[kConfig.row_tiles][2];

  PAGEJIT_DEVICE void clear() {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_max[j][h] = kMinusInfinity;
        row_sum[j][h] = 0.0f;
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kValueTiles; ++depth) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[depth][j][e] = 0.0f;
      }
    }
  }

  // Turns scores into probabilities relative to the running maximum, as b operands of the second
  // product. scale_log2, positive, is applied to differences of scores. What a row does not see has
  // the score -inf, and in shared memory zeros or another token's row.
#if PAGEJIT_TOKEN_SCALES
  // The operands are the probabilities times V's scales, relative to the greatest of these products,
  // so that f16 holds what matters whatever the scales are.
#endif
  PAGEJIT_DEVICE void step(Scores& scores, float scale_log2,
#if PAGEJIT_TOKEN_SCALES
                           const KvStage& stage,
#endif
#if PAGEJIT_KV_F32
                           uint32_t (&p)[Traits::kTokenTiles][kConfig.row_tiles][kTerms][2]) {
#else
                           uint32_t (&p)[Traits::kTokenTiles][kConfig.row_tiles][2]) {
#endif
#if PAGEJIT_TOKEN_SCALES
    float v_scale[Traits::kTokenTiles][2];
    float v_score[Traits::kTokenTiles][2];  // the scale as a score
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float scale = stage.v_scale[i * 16 + score_token(dev::lane_idx() / 4, half)];
        v_scale[i][half] = scale;
        v_score[i][half] = score_of_scale(scale, scale_log2);
      }
    }
#endif
    float new_max[kConfig.row_tiles][2];
    bool grew = false;
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m = row_max[j][h];
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
#if PAGEJIT_TOKEN_SCALES
            m = dev::max2(m, scores[i][j][half * 2 + h] + v_score[i][half]);
#else
            m = dev::max2(m, scores[i][j][half * 2 + h]);
#endif
          }
        }
        // Lanes 4r + c of one c hold the same rows.
        m = dev::max2(m, dev::shuffle_xor(m, 4));
        m = dev::max2(m, dev::shuffle_xor(m, 8));
        m = dev::max2(m, dev::shuffle_xor(m, 16));
        new_max[j][h] = m;
        grew |= m > row_max[j][h];
      }
    }
    // The maximum rarely grows after the first tiles: one vote saves the rescaling.
    if (dev::any(grew)) rescale(new_max, scale_log2);
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
      // No token so far: any finite reference makes the probabilities 0, where -inf would make NaN.
      const float reference[2] = {row_max[j][0] == kMinusInfinity ? 0.0f : row_max[j][0],
                                  row_max[j][1] == kMinusInfinity ? 0.0f : row_max[j][1]};
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          // The difference first: it is exact near the maximum, so that logits of 1e5 keep the
          // digits that matter and the greatest probability is 1.
          const float exponent = (scores[i][j][e] - reference[e % 2]) * scale_log2;
          scores[i][j][e] = dev::exp2_approx(exponent);
          row_sum[j][e % 2] += scores[i][j][e];
#if PAGEJIT_TOKEN_SCALES
          scores[i][j][e] *= v_scale[i][e / 2];
#endif
        }
        // A result tile has tokens in rows, a b operand has them in columns.
#if PAGEJIT_KV_F32
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint32_t terms[kTerms];
          split(terms, scores[i][j][half * 2], scores[i][j][half * 2 + 1]);
#pragma unroll
          for (int t = 0; t < kTerms; ++t) p[i][j][t][half] = dev::movmatrix_trans(terms[t]);
        }
#else
        p[i][j][0] = dev::movmatrix_trans(pack(scores[i][j][0], scores[i][j][1]));
        p[i][j][1] = dev::movmatrix_trans(pack(scores[i][j][2], scores[i][j][3]));
#endif
      }
    }
  }

#if PAGEJIT_KV_F32
  PAGEJIT_DEVICE void accumulate(
      const uint32_t (&p)[Traits::kTokenTiles][kConfig.row_tiles][kTerms][2],
      const KvStage& stage) {
#else
  PAGEJIT_DEVICE void accumulate(const uint32_t (&p)[Traits::kTokenTiles][kConfig.row_tiles][2],
                                 const KvStage& stage) {
#endif
#if PAGEJIT_KV_INT4
#pragma unroll
    for (int depth = 0; depth < Traits::kValueTiles; depth += kDepthsAtOnce) {
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
        uint32_t a[kDepthsAtOnce][4];
        load_v(a, stage, i, depth);
#pragma unroll
        for (int d = 0; d < kDepthsAtOnce; ++d) {
#pragma unroll
          for (int j = 0; j < kConfig.row_tiles; ++j) {
            mma(acc[depth + d][j], a[d], p[i][j][0], p[i][j][1]);
          }
        }
      }
    }
#else
#pragma unroll
    for (int depth = 0; depth < Traits::kValueTiles; ++depth) {
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
#if PAGEJIT_KV_F32
        uint32_t a[kTerms][4];
        load_v(a, stage, i, depth);
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) mma(acc[depth][j], a, p[i][j]);
#else
        uint32_t a[4];
        load_v(a, stage, i, depth);
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) mma(acc[depth][j], a, p[i][j][0], p[i][j][1]);
#endif
      }
    }
#endif
  }

  // Adds up the lanes' sums.
  PAGEJIT_DEVICE void finish() {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 4);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 8);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 16);
      }
    }
  }

 private:
#if PAGEJIT_TOKEN_SCALES
  // What has to be added to a score for its probability to be multiplied with the scale. Bounded, so
  // that a scale of 0, or a softmax scale of almost 0, gives a finite number: what is only a reference
  // may be off.
  PAGEJIT_DEVICE static float score_of_scale(float scale, float scale_log2) {
    constexpr float kLeastScale = 0x1p-100f;
    constexpr float kBound = 0x1p125f;
    const float score = dev::log2_approx(dev::max2(scale, kLeastScale)) * dev::rcp_approx(scale_log2);
    return score < -kBound ? -kBound : score > kBound ? kBound : score;
  }

#endif
  PAGEJIT_DEVICE void rescale(const float (&new_max)[kConfig.row_tiles][2], float scale_log2) {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // A first maximum finds nothing to keep.
        factor[h] = row_max[j][h] == kMinusInfinity
                        ? 0.0f
                        : dev::exp2_approx((row_max[j][h] - new_max[j][h]) * scale_log2);
        row_max[j][h] = new_max[j][h];
        row_sum[j][h] *= factor[h];
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kValueTiles; ++depth) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[depth][j][e] *= factor[e % 2];
      }
    }
  }
};
