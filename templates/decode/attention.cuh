// The arithmetic of one warp on one stage: scores = K q, softmax, accumulators += V^T p, with query
// heads on the n side of mma.m16n8k16 (8 heads a tile) and tokens, then head elements, on its m
// side.
//
// Fragment places used below, for lane = 4 * r + c:
//   an f32 result tile [16 rows][8 heads] has rows r and r + 8, heads 2c and 2c + 1: {(r,2c),
//   (r,2c+1), (r+8,2c), (r+8,2c+1)}; a 16-bit b operand [16 rows][8 heads] has head r, rows {2c,
//   2c+1} and {2c+8, 2c+9}.
#pragma once

constexpr float kLn2 = 0.693147180559945309f;
constexpr float kMinusInfinity = __builtin_bit_cast(float, 0xff800000u);

template <DecodeConfig C>
PAGEJIT_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (C.is_bfloat16) {
    dev::mma_m16n8k16_bf16(d, a, b0, b1);
  } else {
    dev::mma_m16n8k16_f16(d, a, b0, b1);
  }
}

template <DecodeConfig C>
PAGEJIT_DEVICE uint32_t pack(float low, float high) {
  if constexpr (C.is_bfloat16) {
    return dev::pack_bf16x2(low, high);
  } else {
    return dev::pack_f16x2(low, high);
  }
}

// q of this warp's heads as b operands, in registers.
template <DecodeConfig C, bool kInRegisters = C.q_in_registers>
class Query {
 public:
  using Traits = DecodeTraits<C>;

  // q [group_size, head_size] of this KV head. sign_bits: 0, or the sign bits of a pair of elements
  // to flip both.
  PAGEJIT_DEVICE void load(const uint16_t* q, int64_t stride_head, uint32_t sign_bits,
                           DecodeShared<C>&, int head_warp) {
    const int row = dev::lane_idx() / 4;
    const int column = dev::lane_idx() % 4 * 2;
#pragma unroll
    for (int head_tile = 0; head_tile < C.head_tiles; ++head_tile) {
      // Heads beyond the group and elements beyond the head are zero and add nothing. A tile of 8
      // elements is inside the head or beyond it.
      const int head = head_warp * Traits::kWarpHeads + head_tile * 8 + row;
      const bool exists = head < C.group_size;
      const uint16_t* q_row = q + head * stride_head + column;
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int element = depth * 16 + half * 8;
          uint32_t& pair = fragments_[head_tile][depth][half];
          pair = 0;
          if (exists && element < C.head_size) {
            pair = sign_bits ^
                   dev::load_global_nc(reinterpret_cast<const uint32_t*>(q_row + element));
          }
        }
      }
    }
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int head_tile, int depth) const {
    b[0] = fragments_[head_tile][depth][0];
    b[1] = fragments_[head_tile][depth][1];
  }

 private:
  uint32_t fragments_[C.head_tiles][Traits::kDepthTiles][2];
};

// The same where registers would not hold it: in shared memory, read again for every tile.
template <DecodeConfig C>
class Query<C, false> {
 public:
  using Traits = DecodeTraits<C>;

  PAGEJIT_DEVICE void load(const uint16_t* q, int64_t stride_head, uint32_t sign_bits,
                           DecodeShared<C>& shared, int head_warp) {
    constexpr int kChunks = C.head_size_padded / 8;
    for (int i = dev::thread_idx(); i < Traits::kPaddedHeads * kChunks; i += Traits::kThreads) {
      const int head = i / kChunks;
      const int element = i % kChunks * 8;
      Chunk chunk = {};
      if (head < C.group_size && element < C.head_size) {
        chunk =
            dev::load_global_nc(reinterpret_cast<const Chunk*>(q + head * stride_head + element));
#pragma unroll
        for (int w = 0; w < 4; ++w) chunk.word[w] ^= sign_bits;
      }
      *reinterpret_cast<Chunk*>(&shared.q[head][element]) = chunk;
    }
    rows_ =
        &shared
             .q[head_warp * Traits::kWarpHeads + dev::lane_idx() % 8][dev::lane_idx() / 8 % 2 * 8];
    dev::sync_cta();  // q, written by all threads, is read by every warp
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int head_tile, int depth) const {
    dev::ldmatrix_x2(b, rows_ + head_tile * 8 * Traits::kPitch + depth * 16);
  }

 private:
  struct alignas(16) Chunk {
    uint32_t word[4];
  };
  const uint16_t* rows_;  // the row and half that this lane addresses
};

// Scores of a stage: [tokens][heads] as result tiles. Not scaled.
template <DecodeConfig C>
using Scores = float[DecodeTraits<C>::kTokenTiles][C.head_tiles][4];

template <DecodeConfig C>
PAGEJIT_DEVICE void compute_scores(Scores<C>& scores, const KvStage<C>& stage,
                                   const Query<C>& query) {
  using Traits = DecodeTraits<C>;
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < C.head_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[i][j][e] = 0.0f;
    }
  }
  // K is the a operand as it lies: rows are tokens. Matrices: (tokens 0-7, 8-15) x (elements 0-7,
  // 8-15).
  const int row = dev::lane_idx() % 16;
  const int column = dev::lane_idx() / 16 * 8;
#pragma unroll
  for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
    uint32_t b[C.head_tiles][2];
#pragma unroll
    for (int j = 0; j < C.head_tiles; ++j) query.fragment(b[j], j, depth);
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
      uint32_t a[4];
      dev::ldmatrix_x4(a, &stage.k[i * 16 + row][depth * 16 + column]);
#pragma unroll
      for (int j = 0; j < C.head_tiles; ++j) mma<C>(scores[i][j], a, b[j][0], b[j][1]);
    }
  }
}

// Running softmax and accumulators of one warp: its heads over the tokens it has seen.
template <DecodeConfig C>
struct OnlineSoftmax {
  using Traits = DecodeTraits<C>;

  float acc[Traits::kDepthTiles][C.head_tiles][4];  // [head elements][heads]
  // Heads 2c, 2c+1: the greatest score, not scaled, the same in all lanes of a column; and the sum,
  // of this lane's tokens only until finish().
  float row_max[C.head_tiles][2];
  float row_sum[C.head_tiles][2];

  PAGEJIT_DEVICE void clear() {
#pragma unroll
    for (int j = 0; j < C.head_tiles; ++j) {
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
  // product. scale_log2 is positive. Tokens at or beyond num_valid take no part: their score becomes
  // -inf, their probability 0; their rows are zeros in shared memory.
  PAGEJIT_DEVICE void step(Scores<C>& scores, float scale_log2, int num_valid,
                           uint32_t (&p)[Traits::kTokenTiles][C.head_tiles][2]) {
    const int row = dev::lane_idx() / 4;
    float new_max[C.head_tiles][2];
    bool grew = false;
#pragma unroll
    for (int j = 0; j < C.head_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m = row_max[j][h];
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const bool valid = i * 16 + half * 8 + row < num_valid;
            if (!valid) scores[i][j][half * 2 + h] = kMinusInfinity;
            m = dev::max2(m, scores[i][j][half * 2 + h]);
          }
        }
        // Lanes 4r + c of one c hold the same heads.
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
    for (int j = 0; j < C.head_tiles; ++j) {
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
        p[i][j][0] = dev::movmatrix_trans(pack<C>(scores[i][j][0], scores[i][j][1]));
        p[i][j][1] = dev::movmatrix_trans(pack<C>(scores[i][j][2], scores[i][j][3]));
      }
    }
  }

  PAGEJIT_DEVICE void accumulate(const uint32_t (&p)[Traits::kTokenTiles][C.head_tiles][2],
                                 const KvStage<C>& stage) {
    // V^T is the a operand: rows are head elements. Matrices as stored: (tokens 0-7, 8-15) x
    // (elements 0-7, 8-15).
    const int row = dev::lane_idx() / 16 * 8 + dev::lane_idx() % 8;
    const int column = dev::lane_idx() / 8 % 2 * 8;
#pragma unroll
    for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
        uint32_t a[4];
        dev::ldmatrix_x4_trans(a, &stage.v[i * 16 + row][depth * 16 + column]);
#pragma unroll
        for (int j = 0; j < C.head_tiles; ++j) mma<C>(acc[depth][j], a, p[i][j][0], p[i][j][1]);
      }
    }
  }

  // Adds up the lanes' sums.
  PAGEJIT_DEVICE void finish() {
#pragma unroll
    for (int j = 0; j < C.head_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 4);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 8);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 16);
      }
    }
  }

 private:
  PAGEJIT_DEVICE void rescale(const float (&new_max)[C.head_tiles][2], float scale_log2) {
#pragma unroll
    for (int j = 0; j < C.head_tiles; ++j) {
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
