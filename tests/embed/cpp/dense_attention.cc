#include "dense_attention.h"

#include <bit>
#include <cmath>

namespace {

double to_double(Bf16 bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace

std::vector<Bf16> RandomNumbers::take(int count) {
  std::vector<Bf16> numbers;
  for (int i = 0; i < count; ++i) {
    state_ = state_ * 1664525 + 1013904223;  // Numerical Recipes' generator
    const float number = static_cast<float>(state_ >> 8) / (1 << 22) - 2.0f;
    numbers.push_back(static_cast<Bf16>(std::bit_cast<uint32_t>(number) >> 16));  // truncated
  }
  return numbers;
}

void History::append(const Bf16* new_k, const Bf16* new_v, int num_tokens) {
  const auto count = static_cast<size_t>(num_tokens) * kKvElements;
  k.insert(k.end(), new_k, new_k + count);
  v.insert(v.end(), new_v, new_v + count);
}

double compare_with_dense(const History& history, const Bf16* q, const Bf16* out, int count,
                          std::string& what) {
  double worst = 0;
  for (int row = 0; row < count * kNumHeads; ++row) {
    const int query = row / kNumHeads, head = row % kNumHeads;
    const int num_keys = history.num_tokens() - count + query + 1;
    const int kv_offset = head / (kNumHeads / kNumKvHeads) * kHeadSize;
    std::vector<double> weights;
    double sum = 0;
    for (int key = 0; key < num_keys; ++key) {
      const Bf16* k = &history.k[static_cast<size_t>(key * kKvElements + kv_offset)];
      double score = 0;
      for (int i = 0; i < kHeadSize; ++i)
        score += to_double(q[row * kHeadSize + i]) * to_double(k[i]);
      weights.push_back(std::exp(score * kScale));  // scores are small: no maximum is taken off
      sum += weights.back();
    }
    for (int i = 0; i < kHeadSize; ++i) {
      double want = 0, magnitude = 0;
      for (int key = 0; key < num_keys; ++key) {
        const double term =
            weights[static_cast<size_t>(key)] / sum *
            to_double(history.v[static_cast<size_t>(key * kKvElements + kv_offset + i)]);
        want += term;
        magnitude += std::abs(term);
      }
      const double got = to_double(out[row * kHeadSize + i]);
      const double ratio = std::abs(got - want) / (1.01 / 128 * magnitude);
      if (ratio <= worst || std::isinf(worst)) continue;
      worst = std::isnan(ratio) ? HUGE_VAL : ratio;
      what = "token " + std::to_string(query) + ", head " + std::to_string(head) + ", element " +
             std::to_string(i) + " is " + std::to_string(got) + ", should be " +
             std::to_string(want);
    }
  }
  return worst;
}
