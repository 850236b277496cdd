// The custom mask: a bit for each query token and key of a sequence, packed from the lowest of each
// byte on, row after row without gaps.
#pragma once

// What one warp reads of its rows' bits. The lanes 4r + c of one c have the rows of c in common. Of
// two row tiles each of them loads one word: r / 4 is the tile, r / 2 % 2 the row, and r % 2 says
// which of the two words over which the row's bits may extend. So a warp does ceil(row_tiles / 2)
// loads of 4 bytes per tile of tokens, where a byte for each score would be 4 * row_tiles *
// (group_tokens / 16) loads.
class CustomMask {
 public:
  static constexpr int kTilePairs = (kConfig.row_tiles + 1) / 2;
  using Words = uint32_t[kTilePairs];  // of one tile of tokens

  PAGEJIT_DEVICE CustomMask(const AttentionParams& params, const AttentionWork& work,
                            int row_warp) {
    bits_ = params.custom_mask + dev::load_global_nc(params.custom_mask_indptr + work.seq_idx);
    skew_ = static_cast<int>(reinterpret_cast<uint64_t>(bits_) % 4);
    num_bytes_ = (work.query_len * static_cast<int64_t>(work.seq_len) + 7) / 8;
    const int warp_row = row_warp * Traits::kWarpRows;
    const int r = dev::lane_idx() / 4;
    const int c = dev::lane_idx() % 4;
#pragma unroll
    for (int pair = 0; pair < kTilePairs; ++pair) {
      const int tile = pair * 2 + r / 4;
      const int row = warp_row + tile * 8 + c * 2 + r / 2 % 2;
      const bool exists = tile < kConfig.row_tiles && row < work.num_rows;
      const int64_t token = place_of_row(work.row_begin + row).token;
      places_[pair] = exists ? token * work.seq_len + skew_ * 8 : -1;
    }
  }

  // Words that no row needs are 0.
  PAGEJIT_DEVICE void load(Words& words, int first_token) const {
    const int second = dev::lane_idx() / 4 % 2;
#pragma unroll
    for (int pair = 0; pair < kTilePairs; ++pair) {
      words[pair] = 0;
      const int64_t place = places_[pair] + first_token;
      const bool is_needed =
          second == 0 || static_cast<uint32_t>(place) % 32 + kConfig.group_tokens > 32;
      if (places_[pair] >= 0 && is_needed) words[pair] = load_word(place / 32 + second);
    }
  }

  // The scores of the keys that the mask hides become -inf.
  PAGEJIT_DEVICE void hide(Scores& scores, int first_token, const Words& words) const {
    const int r = dev::lane_idx() / 4;
    const int c = dev::lane_idx() % 4;
#pragma unroll
    for (int pair = 0; pair < kTilePairs; ++pair) {
      const uint32_t shift = static_cast<uint32_t>(places_[pair] + first_token) % 32;
      const uint32_t next_word = dev::shuffle(words[pair], dev::lane_idx() ^ 4);
      // Right in the lanes with the first words.
      const uint32_t row_bits =
          static_cast<uint32_t>((static_cast<uint64_t>(next_word) << 32 | words[pair]) >> shift);
#pragma unroll
      for (int j = pair * 2; j < pair * 2 + 2 && j < kConfig.row_tiles; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const uint32_t bits = dev::shuffle(row_bits, (j % 2 * 4 + h * 2) * 4 + c);
#pragma unroll
          for (int i = 0; i < Traits::kTokenTiles; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const bool is_seen = bits >> (i * 16 + score_token(r, half)) & 1;
              if (!is_seen) scores[i][j][half * 2 + h] = kMinusInfinity;
            }
          }
        }
      }
    }
  }

 private:
  // An aligned word that holds bits of the sequence's mask, or lies behind them. Those of its bytes
  // that are not the mask's are not read, but 0. Bits of another row, behind the last token, may be
  // among them: these tokens are masked by their position.
  PAGEJIT_DEVICE uint32_t load_word(int64_t word) const {
    const int64_t first = word * 4 - skew_;
    if (first >= 0 && first + 4 <= num_bytes_) {
      return dev::load_global_nc(reinterpret_cast<const uint32_t*>(bits_ + first));
    }
    uint32_t bits = 0;
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int64_t byte = first + i;
      if (byte < 0 || byte >= num_bytes_) continue;
      bits |= static_cast<uint32_t>(dev::load_global_nc(bits_ + byte)) << (i * 8);
    }
    return bits;
  }

  const unsigned char* bits_;    // of the sequence
  int64_t num_bytes_;            // its length
  int skew_;                     // bytes of the word with its first byte that come before it
  int64_t places_[kTilePairs];   // bit of token 0 in the row that this lane loads, from the first
                                 // word on; -1: none
};
