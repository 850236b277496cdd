// The online softmax of one warp and the second product: accumulators += V^T p. Fragment places as
// in operands.cuh.
#pragma once

// Running softmax and accumulators of one warp: its rows over the tokens it has seen.
template <AttentionConfig C>
struct OnlineSoftmax {
  using Traits = AttentionTraits<C>;

  float acc[Traits::kDepthTiles][C.row_tiles][4];  // [head elements][rows]
  // Rows 2c, 2c+1: the greatest score, the same in all lanes of a column; and the sum, of this
  // lane's tokens only until finish().
  float row_max[C.row_tiles][2];
  float row_sum[C.row_tiles][2];

  PAGEJIT_DEVICE void clear() {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_max[j][h] = kMinusInfinity;
        row_sum[j][h] = 0.0f;
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[depth][j][e] = 0.0f;
      }
    }
  }

  // Turns scores into probabilities relative to the running maximum, as b operands of the second
  // product. scale_log2, positive, is applied to differences of scores. What a row does not see has
  // the score -inf, and in shared memory zeros or another token's row.
  PAGEJIT_DEVICE void step(Scores<C>& scores, float scale_log2,
                           uint32_t (&p)[Traits::kTokenTiles][C.row_tiles][2]) {
    float new_max[C.row_tiles][2];
    bool grew = false;
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m = row_max[j][h];
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            m = dev::max2(m, scores[i][j][half * 2 + h]);
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
    for (int j = 0; j < C.row_tiles; ++j) {
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
        }
        // A result tile has tokens in rows, a b operand has them in columns.
        p[i][j][0] = dev::movmatrix_trans(pack(scores[i][j][0], scores[i][j][1]));
        p[i][j][1] = dev::movmatrix_trans(pack(scores[i][j][2], scores[i][j][3]));
      }
    }
  }

  PAGEJIT_DEVICE void accumulate(const uint32_t (&p)[Traits::kTokenTiles][C.row_tiles][2],
                                 const KvStage<C>& stage) {
#pragma unroll
    for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
        uint32_t a[4];
        load_v(a, stage, i, depth);
#pragma unroll
        for (int j = 0; j < C.row_tiles; ++j) mma(acc[depth][j], a, p[i][j][0], p[i][j][1]);
      }
    }
  }

  // Adds up the lanes' sums.
  PAGEJIT_DEVICE void finish() {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 4);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 8);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 16);
      }
    }
  }

 private:
  PAGEJIT_DEVICE void rescale(const float (&new_max)[C.row_tiles][2], float scale_log2) {
#pragma unroll
    for (int j = 0; j < C.row_tiles; ++j) {
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
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[depth][j][e] *= factor[e % 2];
      }
    }
  }
};
