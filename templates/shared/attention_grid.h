// What host and device agree on for the grid of an attention launch: which CTA does what, and how
// many tokens a split has. Plain C++20.
#pragma once

#include "templates/shared/elements.h"

namespace pagejit_shared {

// Grid where each sequence has one query token: x = split, y = KV head * group_tiles() + tile of
// its rows, z = sequence.
//
// Grid where is_ragged: x = row tile or split, y = KV head. The first num_row_tiles CTAs of x are
// row tiles, those that see the most keys first (attention/row_tiles.cuh): over all sequences in
// kernels for many query tokens and at most 128 sequences, else within each sequence; each reads
// all keys that its rows see, or their first split. The others are the further splits, num_splits -
// 1 for each sequence; only sequences of one row tile have them, so that partials never take more
// than one tile of rows per sequence and KV head.
//
// Grid where splits_row_tiles: x = split * num_row_tiles + row tile, in the same order, y = KV
// head. CTAs that read the same keys for other rows follow each other.

// The row tiles of sequence i stand at [first_row_tile(i), first_row_tile(i + 1)), where the last
// one may be missing: a sum of quotients, rounded up, without a sum over the sequences before it.
PAGEJIT_HOST_DEVICE constexpr int first_row_tile(int seq_idx, int query_begin, int group_size,
                                                 int rows_per_tile) {
  return static_cast<int>(static_cast<unsigned>(query_begin) * static_cast<unsigned>(group_size) /
                          static_cast<unsigned>(rows_per_tile)) +
         seq_idx;
}
// Upper bound of the row tiles of any num_seqs >= 1 sequences with at most num_query_tokens in all;
// at least 1. The last tile of the last sequence is number floor(a) + ceil(b) + num_seqs - 2, where
// a tiles of rows lie before the sequence and b in it; and floor(a) + ceil(b) <= ceil(a + b).
PAGEJIT_HOST_DEVICE constexpr int row_tiles_bound(int num_seqs, int num_query_tokens,
                                                  int group_size, int rows_per_tile) {
  const unsigned rows = static_cast<unsigned>(num_query_tokens) * static_cast<unsigned>(group_size);
  const unsigned rounding = static_cast<unsigned>(rows_per_tile) - 1;
  const int bound =
      static_cast<int>((rows + rounding) / static_cast<unsigned>(rows_per_tile)) + num_seqs - 1;
  return bound > 1 ? bound : 1;
}

// A launch's splits as a factor, since the device would take a division for each CTA: 2^32 /
// num_splits, rounded up.
PAGEJIT_HOST_DEVICE constexpr unsigned split_reciprocal(int num_splits) {
  return num_splits > 1 ? 0xffffffffu / static_cast<unsigned>(num_splits) + 1 : 0;
}
// The least number of tiles per split with which num_splits >= 2 splits hold num_tiles. From 2^32 /
// num_splits tiles on it may be one more than the least.
PAGEJIT_HOST_DEVICE constexpr unsigned tiles_per_split(unsigned num_tiles, int num_splits,
                                                       unsigned reciprocal) {
  const unsigned long long last = num_tiles + static_cast<unsigned>(num_splits) - 1;
  return static_cast<unsigned>(last * reciprocal >> 32);
}

}  // namespace pagejit_shared
