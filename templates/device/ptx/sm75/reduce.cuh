// Integers of all lanes of a warp, by five exchanges.
#pragma once

namespace dev {

PAGEJIT_DEVICE int sum_lanes(int v) {
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) v += shuffle(v, lane_idx() ^ mask);
  return v;
}

PAGEJIT_DEVICE int max_lanes(int v) {
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    const int other = shuffle(v, lane_idx() ^ mask);
    v = other > v ? other : v;
  }
  return v;
}

}  // namespace dev
