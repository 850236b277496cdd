// Scores of one warp on one stage: the product K q. Fragment places as in operands.cuh.
#pragma once

constexpr float kLn2 = 0.693147180559945309f;
constexpr float kMinusInfinity = __builtin_bit_cast(float, 0xff800000u);

// Scores of a stage: [tokens][rows] as result tiles.
using Scores = float[Traits::kTokenTiles][kConfig.row_tiles][4];

// Steps along the head that the first product is unrolled by: all where q is in registers, which
// have no index. Else 8 or a little less, so that long heads do not fill the text.
PAGEJIT_DEVICE constexpr int unrolled_depths() {
#if !PAGEJIT_Q_IN_REGISTERS
  for (int depths = 8; depths > 3; --depths) {
    if (Traits::kDepthTiles % depths == 0) return depths;
  }
#endif
  return Traits::kDepthTiles;
}

#if PAGEJIT_DS_MLA
// Those of K's codes: the sum over a group of codes has one factor for each token.
PAGEJIT_DEVICE void add_codes(Scores& scores, const KvStage& stage, const Query& query) {
#pragma unroll 1
  for (int group = 0; group < kScaleGroups; ++group) {
    Scores sums = {};
#pragma unroll
    for (int d = 0; d < kGroupDepths; ++d) {
      const int depth = group * kGroupDepths + d;
      uint32_t b[kConfig.row_tiles][2];
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) query.fragment(b[j], j, depth);
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
        uint32_t a[4];
        load_k(a, stage, i, depth);
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) mma_codes(sums[i][j], a, b[j][0], b[j][1]);
      }
    }
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int token = i * 16 + score_token(dev::lane_idx() / 4, half != 0);
        const float scale = row_scales(stage, token).v[group];
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
          for (int e = half * 2; e < half * 2 + 2; ++e) scores[i][j][e] += sums[i][j][e] * scale;
        }
      }
    }
  }
}

#endif
PAGEJIT_DEVICE void compute_scores(Scores& scores, const KvStage& stage, const Query& query) {
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[i][j][e] = 0.0f;
    }
  }
#if PAGEJIT_DS_MLA
  add_codes(scores, stage, query);
#elif PAGEJIT_KV_INT4
  constexpr int kUnrolled = unrolled_depths();
#pragma unroll kUnrolled / kDepthsAtOnce
  for (int depth = 0; depth < Traits::kDepthTiles; depth += kDepthsAtOnce) {
    uint32_t b[kDepthsAtOnce][kConfig.row_tiles][2];
#pragma unroll
    for (int d = 0; d < kDepthsAtOnce; ++d) {
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) query.fragment(b[d][j], j, depth + d);
    }
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
      uint32_t a[kDepthsAtOnce][4];
      load_k(a, stage, i, depth);
#pragma unroll
      for (int d = 0; d < kDepthsAtOnce; ++d) {
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) mma(scores[i][j], a[d], b[d][j][0], b[d][j][1]);
      }
    }
  }
#else
  constexpr int kUnrolled = unrolled_depths();
#pragma unroll kUnrolled
  for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#if PAGEJIT_KV_F32
    uint32_t b[kConfig.row_tiles][kTerms][2];
#else
    uint32_t b[kConfig.row_tiles][2];
#endif
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) query.fragment(b[j], j, depth);
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
#if PAGEJIT_KV_F32
      uint32_t a[kTerms][4];
      load_k(a, stage, i, depth);
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) mma(scores[i][j], a, b[j]);
#else
      uint32_t a[4];
      load_k(a, stage, i, depth);
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) mma(scores[i][j], a, b[j][0], b[j][1]);
#endif
    }
  }
#endif
#if PAGEJIT_SCALE_Q_ROWS
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[i][j][e] *= query.row_scale(j, e % 2);
    }
  }
#endif
#if PAGEJIT_DS_MLA
#pragma unroll
  for (int depth = kCodeDepths; depth < Traits::kDepthTiles; ++depth) {
    uint32_t b[kConfig.row_tiles][2];
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) query.fragment(b[j], j, depth);
#pragma unroll
    for (int i = 0; i < Traits::kTokenTiles; ++i) {
      uint32_t a[4];
      load_rotated_k(a, stage, i, depth);
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) mma(scores[i][j], a, b[j][0], b[j][1]);
    }
  }
#elif PAGEJIT_TOKEN_SCALES
#pragma unroll
  for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float scale = stage.k_scale[i * 16 + score_token(dev::lane_idx() / 4, half)];
#pragma unroll
      for (int j = 0; j < kConfig.row_tiles; ++j) {
        scores[i][j][half * 2] *= scale;
        scores[i][j][half * 2 + 1] *= scale;
      }
    }
  }
#endif
}
