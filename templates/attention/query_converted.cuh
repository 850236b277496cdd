// The rows of q that a CTA serves, as b operands of the first product, where q is not of the type of
// the products: through f32, rounded once.
#pragma once

// Two neighbouring elements.
struct alignas(8) QueryPair {
  float low;
  float high;
};

PAGEJIT_DEVICE QueryPair load_query_pair(const QueryElement* p) {
#if PAGEJIT_Q_F32
  return dev::load_global_nc(reinterpret_cast<const QueryPair*>(p));
#elif PAGEJIT_Q_FP8
  const uint32_t halves = unpack_e4m3(dev::load_global_nc(reinterpret_cast<const uint16_t*>(p))).low;
  return {dev::unpack_f16(static_cast<uint16_t>(halves)),
          dev::unpack_f16(static_cast<uint16_t>(halves >> 16))};
#else
  const uint32_t halves = dev::load_global_nc(reinterpret_cast<const uint32_t*>(p));
#if PAGEJIT_Q_BF16
  return {__builtin_bit_cast(float, halves << 16), __builtin_bit_cast(float, halves & 0xffff0000u)};
#else
  return {dev::unpack_f16(static_cast<uint16_t>(halves)),
          dev::unpack_f16(static_cast<uint16_t>(halves >> 16))};
#endif
#endif
}

#if PAGEJIT_SCALE_Q_ROWS
// q's row times `factor` has its greatest magnitude in [2^14, 2^15), where f16 keeps all digits of
// bf16 down to 2^-28 of it; a product with it times `inverse` is the product with q. Both are powers
// of 2, so nothing is rounded. Rows below 2^-112 are scaled as if they had that magnitude.
struct RowScale {
  float factor;
  float inverse;

  PAGEJIT_DEVICE explicit RowScale(float greatest) {
    constexpr uint32_t kLeastExponent = 15;
    uint32_t exponent = __builtin_bit_cast(uint32_t, greatest) >> 23;
    if (exponent < kLeastExponent) exponent = kLeastExponent;
    factor = __builtin_bit_cast(float, (2 * 127 + 14 - exponent) << 23);
    inverse = __builtin_bit_cast(float, (exponent - 14) << 23);
  }
};

PAGEJIT_DEVICE float greater_magnitude(float greatest, QueryPair pair) {
  const float low = dev::max2(pair.low, -pair.low);
  const float high = dev::max2(pair.high, -pair.high);
  return dev::max2(greatest, dev::max2(low, high));
}

#endif
#if PAGEJIT_Q_IN_REGISTERS
// Fragments in registers: this warp's rows.
class Query {
 public:
  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared&, int row_warp) {
    const float sign = source.sign_bits != 0 ? -1.0f : 1.0f;
    const int c = dev::lane_idx() % 4;
#pragma unroll
    for (int row_tile = 0; row_tile < kConfig.row_tiles; ++row_tile) {
      const int row = row_warp * Traits::kWarpRows + row_tile * 8 + dev::lane_idx() / 4;
      const bool exists = row < source.num_rows;
      const QueryElement* start = source.row_start(row);
      QueryPair pairs[Traits::kDepthTiles][2];
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int element = query_element(depth, half, c);
          pairs[depth][half] = {};
          if (exists && element < kConfig.head_size) {
            pairs[depth][half] = load_query_pair(start + element);
          }
        }
      }
      float factor = sign;
#if PAGEJIT_SCALE_Q_ROWS
      float greatest = 0.0f;
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
        greatest = greater_magnitude(greatest, pairs[depth][0]);
        greatest = greater_magnitude(greatest, pairs[depth][1]);
      }
      // Lanes 4r + c of one r hold the same row.
      greatest = dev::max2(greatest, dev::shuffle_xor(greatest, 1));
      greatest = dev::max2(greatest, dev::shuffle_xor(greatest, 2));
      const RowScale scale(greatest);
      factor *= scale.factor;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_scale_[row_tile][h] = dev::shuffle(scale.inverse, (c * 2 + h) * 4);
      }
#endif
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#if PAGEJIT_KV_INT4
          const float low = half == 0 ? pairs[depth][0].low : pairs[depth][0].high;
          const float high = half == 0 ? pairs[depth][1].low : pairs[depth][1].high;
          fragments_[row_tile][depth][half] = pack(low * factor, high * factor);
#else
          const QueryPair& pair = pairs[depth][half];
          fragments_[row_tile][depth][half] = pack(pair.low * factor, pair.high * factor);
#endif
        }
      }
    }
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int row_tile, int depth) const {
    b[0] = fragments_[row_tile][depth][0];
    b[1] = fragments_[row_tile][depth][1];
  }

#if PAGEJIT_SCALE_Q_ROWS
  // Of row 2c + h of a tile.
  PAGEJIT_DEVICE float row_scale(int row_tile, int h) const { return row_scale_[row_tile][h]; }

#endif
 private:
  uint32_t fragments_[kConfig.row_tiles][Traits::kDepthTiles][2];
#if PAGEJIT_SCALE_Q_ROWS
  float row_scale_[kConfig.row_tiles][2];
#endif
};

#else
// The same where registers would not hold it: in shared memory, read again for every tile.
class Query {
 public:
  // A warp converts row by row.
  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared& shared, int row_warp) {
    for (int row = dev::thread_idx() / 32; row < Traits::kTileRows; row += Traits::kWarps) {
      convert_row(source, shared, row);
    }
    dev::sync_cta();  // q, written by all warps, is read by every warp
    const int first_row = row_warp * Traits::kWarpRows;
    rows_ = &shared.q[first_row + dev::lane_idx() % 8][dev::lane_idx() / 8 % 2 * 8];
#if PAGEJIT_SCALE_Q_ROWS
#pragma unroll
    for (int row_tile = 0; row_tile < kConfig.row_tiles; ++row_tile) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_scale_[row_tile][h] =
            shared.q_row_scale[first_row + row_tile * 8 + dev::lane_idx() % 4 * 2 + h];
      }
    }
#endif
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int row_tile, int depth) const {
    dev::ldmatrix_x2(b, rows_ + row_tile * 8 * Traits::kQueryPitch + depth * 16);
  }

#if PAGEJIT_SCALE_Q_ROWS
  // Of row 2c + h of a tile.
  PAGEJIT_DEVICE float row_scale(int row_tile, int h) const { return row_scale_[row_tile][h]; }

#endif
 private:
  // A lane has each 32nd pair of the row, counted by place: place 2i of the row is that of lane i.
  PAGEJIT_DEVICE static void convert_row(const QuerySource& source, AttentionShared& shared,
                                         int row) {
    constexpr int kPairs = kConfig.head_size_padded / 2;
    constexpr int kPasses = (kPairs + 31) / 32;
#if PAGEJIT_DS_MLA
    constexpr int kScaledPasses = kCodeDepths * 8 / 32;  // the rotated part stays bf16
#else
    constexpr int kScaledPasses = kPasses;
#endif
    const QueryElement* start = source.row_start(row);
    QueryPair pairs[kPasses];
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int pair = pass * 32 + dev::lane_idx();
      const int element = query_element(pair / 8, pair / 4 % 2, pair % 4);
      pairs[pass] = {};
      if (row < source.num_rows && element < kConfig.head_size) {
        pairs[pass] = load_query_pair(start + element);
      }
    }
    float factor = source.sign_bits != 0 ? -1.0f : 1.0f;
    [[maybe_unused]] const float sign = factor;
#if PAGEJIT_SCALE_Q_ROWS
    float greatest = 0.0f;
#pragma unroll
    for (int pass = 0; pass < kScaledPasses; ++pass) {
      greatest = greater_magnitude(greatest, pairs[pass]);
    }
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      greatest = dev::max2(greatest, dev::shuffle_xor(greatest, lanes));
    }
    const RowScale scale(greatest);
    factor *= scale.factor;
    if (dev::lane_idx() == 0) shared.q_row_scale[row] = scale.inverse;
#endif
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int pair = pass * 32 + dev::lane_idx();
      if (pair < kPairs) {
#if PAGEJIT_KV_INT4
        const uint32_t both = pack(pairs[pass].low * factor, pairs[pass].high * factor);
        uint16_t* place = &shared.q[row][pair / 8 * 16 + pair % 4 * 2 + pair / 4 % 2];
        place[0] = static_cast<uint16_t>(both);
        place[8] = static_cast<uint16_t>(both >> 16);
#elif PAGEJIT_DS_MLA
        const uint32_t both =
            pass < kScaledPasses
                ? dev::pack_f16x2(pairs[pass].low * factor, pairs[pass].high * factor)
                : dev::pack_bf16x2(pairs[pass].low * sign, pairs[pass].high * sign);
        *reinterpret_cast<uint32_t*>(&shared.q[row][pair * 2]) = both;
#else
        *reinterpret_cast<uint32_t*>(&shared.q[row][pair * 2]) =
            pack(pairs[pass].low * factor, pairs[pass].high * factor);
#endif
      }
    }
  }

  const uint16_t* rows_;  // the row and half that this lane addresses
#if PAGEJIT_SCALE_Q_ROWS
  float row_scale_[kConfig.row_tiles][2];
#endif
};
#endif
