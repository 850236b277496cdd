// Operands of the two products where rows are those of KvLayout::kDsMla, beside what operands.cuh has
// for their codes: the scales in the rows, the rotated part, and V in bf16.
#pragma once

// Of the codes that share a scale, and the rotated part: so many depths.
constexpr int kGroupDepths = pagejit_shared::kDsMlaGroup / 16;
constexpr int kScaleGroups = kCodeDepths / kGroupDepths;
static_assert(Traits::kDepthTiles * 16 ==
              pagejit_shared::kDsMlaLatent + pagejit_shared::kDsMlaRopeElements);
static_assert(Traits::kValueTiles == kCodeDepths);

// d += a b where a is codes.
PAGEJIT_DEVICE void mma_codes(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  dev::mma_m16n8k16_f16(d, a, b0, b1);
}

// The scales of a token's codes.
struct alignas(16) RowScales {
  float v[kScaleGroups];
};
PAGEJIT_DEVICE const RowScales& row_scales(const KvStage& stage, int token) {
  return *reinterpret_cast<const RowScales*>(&stage.k[token][pagejit_shared::kDsMlaScales]);
}

// The a operand of the first product from the rotated part: 16 tokens (rows) x 16 elements.
PAGEJIT_DEVICE void load_rotated_k(uint32_t (&a)[4], const KvStage& stage, int token_tile,
                                   int depth) {
  const int row = dev::lane_idx() % 16;
  const int column = (depth - kCodeDepths) * 32 + dev::lane_idx() / 16 * 16;  // bytes
  dev::ldmatrix_x4(a, &stage.k[token_tile * 16 + row][pagejit_shared::kDsMlaRope + column]);
}

// The scales, for one group of elements, of the tokens {2c, 2c+1} and {2c+8, 2c+9} of a tile, which
// lane 4r + c has in its operands of V.
struct ValueScales {
  float v[2][2];

  PAGEJIT_DEVICE void load(const KvStage& stage, int token_tile, int group) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = token_tile * 16 + half * 8 + dev::lane_idx() % 4 * 2 + i;
        v[half][i] = row_scales(stage, token).v[group];
      }
    }
  }
};

// The a operand of the second product as load_v() has it, times the scales: rounded to bf16 once, as
// a cache of bf16 would hold it.
PAGEJIT_DEVICE void load_v(uint32_t (&a)[4], const KvStage& stage, int token_tile, int depth,
                           const ValueScales& scales) {
  load_v(a, stage, token_tile, depth);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float low = dev::unpack_f16(static_cast<uint16_t>(a[i]));
    const float high = dev::unpack_f16(static_cast<uint16_t>(a[i] >> 16));
    a[i] = dev::pack_bf16x2(low * scales.v[i / 2][0], high * scales.v[i / 2][1]);
  }
}
