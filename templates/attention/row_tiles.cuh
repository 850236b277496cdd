// Which row tile of which sequence a CTA serves, where the numbers of query tokens differ.
#pragma once

// A tile of rows: number `tile` of its sequence's.
struct RowTile {
  int seq_idx;
  int tile;
};

// The last sequence whose row tiles begin at or before `row_tile`; -1 where there is none. The tile
// may lie behind its last row. All lanes of a warp search together: one round of loads for 32
// sequences, two for 1,024.
PAGEJIT_DEVICE int find_sequence(const AttentionParams& params, int row_tile) {
  constexpr int kTileRows = Traits::kTileRows;
  int begin = 0;
  int count = params.num_seqs;
  while (count > 1) {
    const int step = (count + 31) / 32;
    const int probe = begin + dev::lane_idx() * step;
    bool is_before = false;
    if (probe < begin + count) {
      const int query_begin = dev::load_global_nc(params.query_start_loc + probe);
      is_before = pagejit_shared::first_row_tile(probe, query_begin, kConfig.group_size,
                                                 kTileRows) <= row_tile;
    }
    const int num_before = dev::count_lanes(is_before);
    if (num_before == 0) return -1;  // only where query_start_loc does not begin with 0
    const int end = begin + count;
    begin += (num_before - 1) * step;
    count = end - begin < step ? end - begin : step;
  }
  return begin;
}

// The row tiles of the launch in the order of their sequences, the last one first: within a
// sequence the heaviest. `row_tile` of them is taken. False where there is none.
PAGEJIT_DEVICE bool find_tile_in_order(const AttentionParams& params, int row_tile,
                                       RowTile& found) {
  found.seq_idx = find_sequence(params, row_tile);
  if (found.seq_idx < 0) return false;
  const int query_begin = dev::load_global_nc(params.query_start_loc + found.seq_idx);
  found.tile = row_tile - pagejit_shared::first_row_tile(found.seq_idx, query_begin,
                                                         kConfig.group_size, Traits::kTileRows);
  return true;
}

#if PAGEJIT_HEAVIEST_FIRST
// The row tiles of up to kMaxSeqs sequences, ordered by the keys that they see: the heaviest ones
// are handed out first, so that a long one does not begin when all others have ended. Weights are
// whole multiples of a tile's query tokens, so that a sequence's tiles have weights that follow
// each other (under a causal mask; else they are the same). A window changes nothing: tiles that it
// cuts have about the same weight.
//
// A tile's rank is its weight, then its sequence's number from the last on. Each lane counts the
// tiles of its sequences that are above a rank; the rank that has `position` tiles above it is
// found by halves, about 20 sums over the warp.
class TileOrder {
 public:
  static constexpr int kMaxSeqs = 128;

  PAGEJIT_DEVICE explicit TileOrder(const AttentionParams& params) {
#pragma unroll
    for (int i = 0; i < kSeqsPerLane; ++i) {
      const int seq_idx = seq_of(i);
      num_tiles_[i] = weight_[i] = 0;
      if (seq_idx >= params.num_seqs) continue;
      const int query_len = dev::load_global_nc(params.query_start_loc + seq_idx + 1) -
                            dev::load_global_nc(params.query_start_loc + seq_idx);
      const int seq_len = load_table_len(params, seq_idx);
      num_tiles_[i] = count_tiles(query_len);
#if PAGEJIT_CAUSAL || PAGEJIT_CAUSAL_FLAGS
      // Without overflow, whatever the memory holds.
      weight_[i] = weight_of(
          static_cast<int>(static_cast<uint32_t>(seq_len) - static_cast<uint32_t>(query_len)));
#else
      weight_[i] = weight_of(seq_len);
#endif
    }
  }

  // The tile with `position` others before it. False where there are no so many.
  PAGEJIT_DEVICE bool find(int position, RowTile& found) const {
    int below = -1;  // more than `position` tiles are above it
    int rank = largest_rank();
    if (count_above(below) <= position) return false;
    while (rank - below > 1) {
      const int middle = below + (rank - below) / 2;
      if (count_above(middle) > position) {
        below = middle;
      } else {
        rank = middle;
      }
    }
    found.seq_idx = kMaxSeqs - 1 - rank % kMaxSeqs;
#if PAGEJIT_CAUSAL || PAGEJIT_CAUSAL_FLAGS
    // The one tile of this rank.
    int weight = 0;
#pragma unroll
    for (int i = 0; i < kSeqsPerLane; ++i) {
      const int of_lane = dev::shuffle(weight_[i], found.seq_idx % 32);
      if (found.seq_idx / 32 == i) weight = of_lane;
    }
    found.tile = rank / kMaxSeqs - weight;
#else
    found.tile = position - count_above(rank);
#endif
    return true;
  }

 private:
  static constexpr int kSeqsPerLane = kMaxSeqs / 32;
  static constexpr int kTileRows = Traits::kTileRows;
  static constexpr int kTileQueries = (kTileRows + kConfig.group_size - 1) / kConfig.group_size;
  // Ranks fit 31 bits: sequences and their tiles are less than these, whatever the memory holds.
  static constexpr int kMaxWeight = 1 << 22;
  static constexpr int kMaxTiles = 1 << 22;

  PAGEJIT_DEVICE static int seq_of(int i) { return i * 32 + dev::lane_idx(); }
  PAGEJIT_DEVICE static int weight_of(int num_tokens) {
    const int weight = num_tokens / kTileQueries;
    return weight < 0 ? 0 : weight > kMaxWeight ? kMaxWeight : weight;
  }
  PAGEJIT_DEVICE static int count_tiles(int query_len) {
#if PAGEJIT_DEBUG
    if (query_len < 0) return 1;  // which reports it
#endif
    if (query_len <= 0) return 0;
    const int64_t rows = query_len * static_cast<int64_t>(kConfig.group_size);
    const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
    return tiles > kMaxTiles ? kMaxTiles : static_cast<int>(tiles);
  }

  PAGEJIT_DEVICE int largest_rank() const {
    int largest = 0;
#pragma unroll
    for (int i = 0; i < kSeqsPerLane; ++i) {
      const int weight = weight_[i] + num_tiles_[i];
      largest = weight > largest ? weight : largest;
    }
    return dev::max_lanes(largest) * kMaxSeqs + kMaxSeqs - 1;
  }

  // Tiles of all sequences with a rank above this one.
  PAGEJIT_DEVICE int count_above(int rank) const {
    int count = 0;
#pragma unroll
    for (int i = 0; i < kSeqsPerLane; ++i) {
      // A tile of this sequence is above from this weight on. Rounded down, also below 0.
      const int least = ((rank - (kMaxSeqs - 1 - seq_of(i))) >> 7) + 1;
#if PAGEJIT_CAUSAL || PAGEJIT_CAUSAL_FLAGS
      const int above = weight_[i] + num_tiles_[i] - least;
      count += above < 0 ? 0 : above > num_tiles_[i] ? num_tiles_[i] : above;
#else
      count += weight_[i] >= least ? num_tiles_[i] : 0;
#endif
    }
    return dev::sum_lanes(count);
  }
  static_assert(kMaxSeqs == 1 << 7);

  int num_tiles_[kSeqsPerLane];
  int weight_[kSeqsPerLane];  // of a sequence's first tile
};

#endif
#if !PAGEJIT_SPLIT_ROW_TILES
// The row tile of the CTA that is number `index` of those with row tiles. False where there is
// none.
PAGEJIT_DEVICE bool find_row_tile(const AttentionParams& params, int index, RowTile& found) {
#if PAGEJIT_HEAVIEST_FIRST
  if (params.num_seqs > 1 && params.num_seqs <= TileOrder::kMaxSeqs) {
    return TileOrder(params).find(index, found);
  }
#endif
  return find_tile_in_order(params, params.num_row_tiles - 1 - index, found);
}

#endif
