// The rows of q that a CTA serves, as b operands of the first product where q, K and V are f32: in
// terms (operands_f32.cuh), split once.
#pragma once

#if PAGEJIT_Q_IN_REGISTERS
// Fragments in registers: this warp's rows.
class Query {
 public:
  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared&, int row_warp) {
    const float sign = source.sign_bits != 0 ? -1.0f : 1.0f;
#pragma unroll
    for (int row_tile = 0; row_tile < kConfig.row_tiles; ++row_tile) {
      // Rows and elements that do not exist are zero and add nothing. Eight elements are inside the
      // head or beyond it.
      const int row = row_warp * Traits::kWarpRows + row_tile * 8 + dev::lane_idx() / 4;
      const bool exists = row < source.num_rows;
      const float* start = dev::hold(source.row_start(row));
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int element = query_element(depth, half, dev::lane_idx() % 4);
          float low = 0.0f;
          float high = 0.0f;
          if (exists && depth * 16 + half * 8 < kConfig.head_size) {
            low = sign * dev::load_global_nc(start + element);
            high = sign * dev::load_global_nc(start + element + 4);
          }
          split(fragments_[row_tile][depth][half], low, high);
        }
      }
    }
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[kTerms][2], int row_tile, int depth) const {
#pragma unroll
    for (int t = 0; t < kTerms; ++t) {
      b[t][0] = fragments_[row_tile][depth][0][t];
      b[t][1] = fragments_[row_tile][depth][1][t];
    }
  }

 private:
  uint32_t fragments_[kConfig.row_tiles][Traits::kDepthTiles][2][kTerms];
};

#else
// The same where registers would not hold it: in shared memory, a matrix of each term, read again
// for every tile.
class Query {
 public:
  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared& shared, int row_warp) {
    constexpr int kChunks = kConfig.head_size_padded / 8;
    const float sign = source.sign_bits != 0 ? -1.0f : 1.0f;
    for (int i = dev::thread_idx(); i < Traits::kTileRows * kChunks; i += Traits::kThreads) {
      const int row = i / kChunks;
      const int element = i % kChunks * 8;
      Quad low = {};
      Quad high = {};
      if (row < source.num_rows && element < kConfig.head_size) {
        const auto* start = reinterpret_cast<const Quad*>(source.row_start(row) + element);
        low = dev::load_global_nc(start);
        high = dev::load_global_nc(start + 1);
      }
      Chunk chunks[kTerms];
#pragma unroll
      for (int c = 0; c < 4; ++c) {  // the places 2c and 2c + 1, as query_element() says
        uint32_t terms[kTerms];
        split(terms, sign * low.v[c], sign * high.v[c]);
#pragma unroll
        for (int t = 0; t < kTerms; ++t) chunks[t].word[c] = terms[t];
      }
#pragma unroll
      for (int t = 0; t < kTerms; ++t) {
        *reinterpret_cast<Chunk*>(&shared.q[t][row][element]) = chunks[t];
      }
    }
    rows_ = &shared.q[0][row_warp * Traits::kWarpRows + dev::lane_idx() % 8]
                     [dev::lane_idx() / 8 % 2 * 8];
    dev::sync_cta();  // q, written by all threads, is read by every warp
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[kTerms][2], int row_tile, int depth) const {
#pragma unroll
    for (int t = 0; t < kTerms; ++t) {
      const int row = t * Traits::kTileRows + row_tile * 8;
      dev::ldmatrix_x2(b[t], rows_ + row * Traits::kQueryPitch + depth * 16);
    }
  }

 private:
  struct alignas(16) Quad {
    float v[4];
  };
  struct alignas(16) Chunk {
    uint32_t word[4];
  };
  const uint16_t* rows_;  // the row and half that this lane addresses, in the first term's matrix
};
#endif
