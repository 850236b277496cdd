// The online softmax of a CTA and the second product where K's rows hold V. A warp has the scores of
// its rows on its group's tokens; the groups agree on each row's maximum and put their probabilities
// into shared memory, and each warp then adds up all rows of the tile over all of its tokens, for
// tiles of V's elements of its own: V is read from shared memory once, whatever the rows. Fragment
// places as in operands.cuh.
#pragma once

// Running softmax of one warp's rows, and the accumulators of one warp's elements of V.
struct OnlineSoftmax {
  static constexpr int kTileRowTiles = Traits::kTileRows / 8;

  float acc[Traits::kWarpValueTiles][kTileRowTiles][4];  // [elements][rows of the tile]
  // The warp's own rows 2c, 2c+1: the greatest score over all groups, and the sum of the
  // probabilities, of this lane's tokens only until finish().
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
    }
#pragma unroll
    for (int tile = 0; tile < Traits::kWarpValueTiles; ++tile) {
#pragma unroll
      for (int j = 0; j < kTileRowTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[tile][j][e] = 0.0f;
      }
    }
  }

  // A warp's tiles of V's elements are [first_value_tile(), first_value_tile() + kWarpValueTiles), as
  // far as they exist.
  PAGEJIT_DEVICE static int first_value_tile() {
    return dev::thread_idx() / 32 * Traits::kWarpValueTiles;
  }
  PAGEJIT_DEVICE static bool has_value_tile(int tile) {
    return Traits::kValueTiles % Traits::kWarpValueTiles == 0 &&
                   Traits::kValueTiles / Traits::kWarpValueTiles == Traits::kWarps
               ? true
               : first_value_tile() + tile < Traits::kValueTiles;
  }

  // Turns scores into probabilities relative to the running maximum, in shared memory, with the
  // factors of what was added up before. scale_log2, positive, is applied to differences of scores.
  // All threads of the CTA call it together; p is there for all afterwards.
  PAGEJIT_DEVICE void step(const Scores& scores, float scale_log2, LatentExchange& exchange,
                           int token_group, int row_warp) {
    const int first_row = row_warp * Traits::kWarpRows + dev::lane_idx() % 4 * 2;
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
      RowPair greatest;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m = kMinusInfinity;
#pragma unroll
        for (int i = 0; i < Traits::kTokenTiles; ++i) {
          m = dev::max2(m, dev::max2(scores[i][j][h], scores[i][j][2 + h]));
        }
        // Lanes 4r + c of one c hold the same rows.
        m = dev::max2(m, dev::shuffle_xor(m, 4));
        m = dev::max2(m, dev::shuffle_xor(m, 8));
        greatest.v[h] = dev::max2(m, dev::shuffle_xor(m, 16));
      }
      if (dev::lane_idx() < 4) row_pair(exchange.by_group[token_group], first_row + j * 8) = greatest;
    }
    dev::sync_cta();  // the greatest scores of all groups are there

    bool grew = false;
    float factor[kConfig.row_tiles][2];
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
      float new_max[2] = {row_max[j][0], row_max[j][1]};
#pragma unroll
      for (int group = 0; group < kConfig.token_groups; ++group) {
        const RowPair greatest = row_pair(exchange.by_group[group], first_row + j * 8);
#pragma unroll
        for (int h = 0; h < 2; ++h) new_max[h] = dev::max2(new_max[h], greatest.v[h]);
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        grew |= new_max[h] > row_max[j][h];
        // A first maximum finds nothing to keep.
        factor[j][h] = row_max[j][h] == kMinusInfinity
                           ? 0.0f
                           : dev::exp2_approx((row_max[j][h] - new_max[h]) * scale_log2);
        row_max[j][h] = new_max[h];
        row_sum[j][h] *= factor[j][h];
      }
    }
    // One warp of those that have the same rows tells the others.
    const bool has_factors = dev::any(grew);
    if (token_group == 0) {
      if (dev::lane_idx() == 0) exchange.has_factors[row_warp] = has_factors;
      if (has_factors && dev::lane_idx() < 4) {
#pragma unroll
        for (int j = 0; j < kConfig.row_tiles; ++j) {
          row_pair(exchange.factor, first_row + j * 8) = {factor[j][0], factor[j][1]};
        }
      }
    }
    const int first_token = token_group * kConfig.group_tokens;
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
      // No token so far: any finite reference makes the probabilities 0, where -inf would make NaN.
      const float reference[2] = {row_max[j][0] == kMinusInfinity ? 0.0f : row_max[j][0],
                                  row_max[j][1] == kMinusInfinity ? 0.0f : row_max[j][1]};
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float p[2];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            // The difference first, as in kernels with V of its own.
            p[h] = dev::exp2_approx((scores[i][j][half * 2 + h] - reference[h]) * scale_log2);
            row_sum[j][h] += p[h];
          }
          const int token = first_token + i * 16 + score_token(dev::lane_idx() / 4, half != 0);
          *reinterpret_cast<uint32_t*>(&exchange.p[token][first_row + j * 8]) = pack(p[0], p[1]);
        }
      }
    }
    dev::sync_cta();  // the probabilities of all groups are there, and the factors
  }

  // accumulators += V^T p over the tile that step() was called for, whose stage of each group this is.
  PAGEJIT_DEVICE void accumulate(const KvStage (&ring)[kConfig.token_groups][kConfig.num_stages],
                                 int stage, const LatentExchange& exchange) {
    rescale(exchange);
#pragma unroll 1
    for (int group = 0; group < kConfig.token_groups; ++group) {
#pragma unroll
      for (int i = 0; i < Traits::kTokenTiles; ++i) {
        uint32_t p[kTileRowTiles][2];
        load_p(p, &exchange.p[group * kConfig.group_tokens + i * 16]);
#if PAGEJIT_DS_MLA
        ValueScales scales;
        static_assert(kGroupDepths % Traits::kWarpValueTiles == 0 ||
                      Traits::kWarpValueTiles % kGroupDepths == 0);
#endif
#pragma unroll
        for (int tile = 0; tile < Traits::kWarpValueTiles; ++tile) {
          if (!has_value_tile(tile)) continue;
          uint32_t a[4];
#if PAGEJIT_DS_MLA
          const KvStage& rows = ring[group][stage];
          const int depth = first_value_tile() + tile;
          if (tile % kGroupDepths == 0) scales.load(rows, i, depth / kGroupDepths);
          load_v(a, rows, i, depth, scales);
#else
          load_v(a, ring[group][stage], i, first_value_tile() + tile);
#endif
#pragma unroll
          for (int j = 0; j < kTileRowTiles; ++j) mma(acc[tile][j], a, p[j][0], p[j][1]);
        }
      }
    }
  }

  // Adds up the lanes' sums, and those of the groups. All threads of the CTA call it together.
  PAGEJIT_DEVICE void finish(LatentExchange& exchange, int token_group, int row_warp) {
    const int first_row = row_warp * Traits::kWarpRows + dev::lane_idx() % 4 * 2;
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 4);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 8);
        row_sum[j][h] += dev::shuffle_xor(row_sum[j][h], 16);
      }
      if (dev::lane_idx() < 4) {
        row_pair(exchange.by_group[token_group], first_row + j * 8) = {row_sum[j][0],
                                                                       row_sum[j][1]};
      }
    }
    dev::sync_cta();  // the sums of all groups are there
#pragma unroll
    for (int j = 0; j < kConfig.row_tiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) row_sum[j][h] = 0.0f;
#pragma unroll
      for (int group = 0; group < kConfig.token_groups; ++group) {
        const RowPair sum = row_pair(exchange.by_group[group], first_row + j * 8);
#pragma unroll
        for (int h = 0; h < 2; ++h) row_sum[j][h] += sum.v[h];
      }
    }
  }

 private:
  // Of the rows 2c and 2c + 1 of a tile.
  struct alignas(8) RowPair {
    float v[2];
  };
  PAGEJIT_DEVICE static RowPair& row_pair(float (&rows)[Traits::kTileRows], int row) {
    return *reinterpret_cast<RowPair*>(&rows[row]);
  }
  PAGEJIT_DEVICE static const RowPair& row_pair(const float (&rows)[Traits::kTileRows], int row) {
    return *reinterpret_cast<const RowPair*>(&rows[row]);
  }

  // The maximum rarely grows after the first tiles.
  PAGEJIT_DEVICE void rescale(const LatentExchange& exchange) {
#pragma unroll
    for (int warp = 0; warp < kConfig.row_warps; ++warp) {
      if (exchange.has_factors[warp] == 0) continue;
#pragma unroll
      for (int i = 0; i < kConfig.row_tiles; ++i) {
        const int j = warp * kConfig.row_tiles + i;
        const RowPair factor = row_pair(exchange.factor, j * 8 + dev::lane_idx() % 4 * 2);
#pragma unroll
        for (int tile = 0; tile < Traits::kWarpValueTiles; ++tile) {
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[tile][j][e] *= factor.v[e % 2];
        }
      }
    }
  }

  // The b operands of 16 tokens and all rows; matrices of 8 tokens x 8 rows, transposed.
  PAGEJIT_DEVICE static void load_p(uint32_t (&p)[kTileRowTiles][2],
                                    const uint16_t (*tokens)[Traits::kProbabilityPitch]) {
    const int token = dev::lane_idx() % 16;
#pragma unroll
    for (int j = 0; j + 1 < kTileRowTiles; j += 2) {
      uint32_t both[4];
      dev::ldmatrix_x4_trans(both, &tokens[token][(j + dev::lane_idx() / 16) * 8]);
      p[j][0] = both[0];
      p[j][1] = both[1];
      p[j + 1][0] = both[2];
      p[j + 1][1] = both[3];
    }
    if constexpr (kTileRowTiles % 2 != 0) {
      dev::ldmatrix_x2_trans(p[kTileRowTiles - 1], &tokens[token][(kTileRowTiles - 1) * 8]);
    }
  }
};

// Puts one unit's rows into shared memory: of each warp its elements, and of the first group's warps
// the statistics.
PAGEJIT_DEVICE void stage_unit(MergeBuffer& merge, const OnlineSoftmax& softmax, int unit,
                               int token_group, int row_warp) {
  const int result_row = dev::lane_idx() / 4;
  const int column = dev::lane_idx() % 4 * 2;
#pragma unroll
  for (int j = 0; j < OnlineSoftmax::kTileRowTiles; ++j) {
    const int first_row = j * 8 - unit * pagejit_shared::kMergeUnitRows;
    if (first_row < 0 || first_row >= Traits::kMergeRows) continue;
    const bool has_stats =
        token_group == 0 && j / kConfig.row_tiles == row_warp && result_row == 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + column + h;
      if (has_stats) {
        merge.groups.stats[0][row] = {softmax.row_max[j % kConfig.row_tiles][h],
                                      softmax.row_sum[j % kConfig.row_tiles][h]};
      }
      float* acc = merge.groups.acc[0][row];
#pragma unroll
      for (int tile = 0; tile < Traits::kWarpValueTiles; ++tile) {
        if (!OnlineSoftmax::has_value_tile(tile)) continue;
        const int depth = OnlineSoftmax::first_value_tile() + tile;
        acc[result_element(depth, result_row, false)] = softmax.acc[tile][j][h];
        acc[result_element(depth, result_row, true)] = softmax.acc[tile][j][h + 2];
      }
    }
  }
}
