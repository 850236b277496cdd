// The rows of q that a CTA serves, as b operands of the first product: their bits as they are.
#pragma once

#if PAGEJIT_Q_IN_REGISTERS
// Fragments in registers: this warp's rows.
class Query {
 public:
  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared&, int row_warp) {
    const int column = dev::lane_idx() % 4 * 2;
    // Held, or each of the loads below would have its sign read, and its address multiplied out
    // from the strides.
    const uint32_t sign_bits =
        static_cast<uint32_t>(dev::opaque(static_cast<int>(source.sign_bits)));
#pragma unroll
    for (int row_tile = 0; row_tile < kConfig.row_tiles; ++row_tile) {
      // Elements that do not exist are zero and add nothing: a tile of 8 elements is inside the
      // head or beyond it. Rows that do not exist are the first one once more; nothing reads their
      // result.
      const int row = row_warp * Traits::kWarpRows + row_tile * 8 + dev::lane_idx() / 4;
      const uint16_t* start = dev::hold(source.row_start(row < source.num_rows ? row : 0) + column);
#pragma unroll
      for (int depth = 0; depth < Traits::kDepthTiles; ++depth) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int element = depth * 16 + half * 8;
          uint32_t& pair = fragments_[row_tile][depth][half];
          pair = 0;
          if (element < kConfig.head_size) {
            pair =
                sign_bits ^ dev::load_global_nc(reinterpret_cast<const uint32_t*>(start + element));
          }
        }
      }
    }
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int row_tile, int depth) const {
    b[0] = fragments_[row_tile][depth][0];
    b[1] = fragments_[row_tile][depth][1];
  }

 private:
  uint32_t fragments_[kConfig.row_tiles][Traits::kDepthTiles][2];
};

#else
// The same where registers would not hold it: in shared memory, read again for every tile.
class Query {
 public:
  PAGEJIT_DEVICE void load(const QuerySource& source, AttentionShared& shared, int row_warp) {
    constexpr int kChunks = kConfig.head_size_padded / 8;
    for (int i = dev::thread_idx(); i < Traits::kTileRows * kChunks; i += Traits::kThreads) {
      const int row = i / kChunks;
      const int element = i % kChunks * 8;
      Chunk chunk = {};
      if (row < source.num_rows && element < kConfig.head_size) {
        chunk =
            dev::load_global_nc(reinterpret_cast<const Chunk*>(source.row_start(row) + element));
#pragma unroll
        for (int w = 0; w < 4; ++w) chunk.word[w] ^= source.sign_bits;
      }
      *reinterpret_cast<Chunk*>(&shared.q[row][element]) = chunk;
    }
    rows_ =
        &shared
             .q[row_warp * Traits::kWarpRows + dev::lane_idx() % 8][dev::lane_idx() / 8 % 2 * 8];
    dev::sync_cta();  // q, written by all threads, is read by every warp
  }

  PAGEJIT_DEVICE void fragment(uint32_t (&b)[2], int row_tile, int depth) const {
    dev::ldmatrix_x2(b, rows_ + row_tile * 8 * Traits::kQueryPitch + depth * 16);
  }

 private:
  struct alignas(16) Chunk {
    uint32_t word[4];
  };
  const uint16_t* rows_;  // the row and half that this lane addresses
};
#endif
