// SplitMix64 (Steele, Lea, Flood 2014): the random numbers of every test and check. A seed gives
// the same numbers on every machine and compiler, which the distributions of <random> do not
// promise. Not for cryptography. Thread-safety: one instance per thread.
#pragma once

#include <cstdint>

namespace pagejit {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound). The bias of the modulo is below bound / 2^64.
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(bound));
  }

  // Uniform in [-1, 1).
  float uniform() { return static_cast<float>(static_cast<int64_t>(next()) >> 40) * 0x1p-23f; }

  // Nearly normal with variance 1 and |x| < 3.5: the sum of four uniform 16-bit numbers.
  float normal() {
    const uint64_t bits = next();
    int sum = 0;
    for (int part = 0; part < 4; ++part) sum += static_cast<int>((bits >> (16 * part)) & 0xffff);
    // The sum has mean 4 * 32767.5 and variance 4 * 65536^2 / 12.
    return (static_cast<float>(sum) - 131070.0f) * (1.7320508f / 65536.0f);
  }

 private:
  uint64_t state_;
};

}  // namespace pagejit
