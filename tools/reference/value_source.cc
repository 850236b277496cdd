#include "tools/reference/value_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

// Scores of the extreme regimes: a little above 5e4, the least that a mask or an initial maximum of
// -5e4 gets wrong.
constexpr float kExtremeScore = 5.2e4f;
constexpr int kExtremeElements = 4;      // elements of q and k that make the score large
constexpr float kExtremeQuery = 256.0f;  // their value in q
// Octaves over which the scales of tokens are spread.
constexpr int kScaleOctaves = 8;
// An extreme element in K of 8 bits, where the scale makes up for the rest: the greatest e4m3, an
// e5m2 too, or the greatest int8 or int4.
float extreme_code(DataType type) {
  return type == DataType::kInt8 ? 127.0f : type == DataType::kInt4 ? 7.0f : 448.0f;
}

// K's and V's scales of different heads lie in every second place, for the stride to matter.
constexpr int64_t kScaleStride = 2;
constexpr float kGreatestNormal = 3.5f;  // of SplitMix64::normal()

// Of 8 or 4 bits.
bool is_small(DataType type) { return data_type_bits(type) <= 8; }

// Between 1 and 1.6, so that a scale is no power of two and all values are in range.
constexpr float kLeastMargin = 1.0f;
constexpr float kGreatestMargin = 1.6f;
float margin(SplitMix64& rng) { return 1.3f + 0.3f * rng.uniform(); }

// One element of eight is spread over all the octaves of a type of 8 or 4 bits, from the greatest
// value to the least subnormal number: 448 to 2^-9, 57344 to 2^-16, 127 and 7 to 1.
float spread(SplitMix64& rng, DataType type, float value) {
  const int octaves = type == DataType::kInt4         ? 4
                      : type == DataType::kInt8       ? 8
                      : type == DataType::kFloat8E4m3 ? 18
                                                      : 32;
  return rng.below(8) == 0 ? std::ldexp(value, -static_cast<int>(rng.below(octaves))) : value;
}

}  // namespace

ValueSource::ValueSource(const BatchOptions& options, float scale)
    : options_(options), scale_(scale) {
  extreme_key_ = is_small(options.spec.kv_dtype)
                     ? std::copysign(extreme_code(options.spec.kv_dtype), scale)
                     : kExtremeScore / (scale * kExtremeElements * kExtremeQuery);
  draw_scales();
}

void ValueSource::draw_q(SplitMix64& rng, float* row) const {
  const DataType type = options_.spec.q_dtype;
  if (options_.vllm_values) return draw_uniform(rng, type, row);
  for (int i = 0; i < options_.spec.head_size; ++i) {
    float value = is_extreme_element(i) ? kExtremeQuery : small_value(rng);
    if (is_small(type) && !is_extreme()) value = spread(rng, type, value) / q_scale_[0];
    row[i] = round_to_type(type, value);
  }
}

ValueSource::TokenScales ValueSource::draw_k_and_v(SplitMix64& rng, int64_t kv_head, float* k_row,
                                                   float* v_row) const {
  const DataType type = options_.spec.kv_dtype;
  if (options_.vllm_values) {
    draw_uniform(rng, type, k_row);
    draw_uniform(rng, type, v_row);
    return {};
  }
  const LogitRegime regime = options_.logits;
  const bool negative =
      regime == LogitRegime::kLow || (regime == LogitRegime::kMixed && (rng.next() >> 63) != 0);
  const auto place = static_cast<size_t>(kv_head * kv_scale_stride_);
  TokenScales scales;
  float v_factor = 1;
  if (options_.spec.token_scales) {
    scales = draw_token_scales(rng);
    // Values as far apart as their scales, so that each token uses all codes.
    v_factor = scales.v * greatest_value(type) / kLeastMargin;
  } else if (is_small(type)) {
    scales = {k_scale_[place], v_scale_[place]};
  }
  const int head_size_v = value_head_size(options_.spec);
  for (int i = 0; i < std::max(options_.spec.head_size, head_size_v); ++i) {
    const float large = negative ? -extreme_key_ : extreme_key_;
    float k = is_extreme_element(i) ? large : small_value(rng);
    float v = rng.uniform() * v_factor;
    if (is_small(type)) {
      if (!is_extreme()) k = spread(rng, type, k) / scales.k;
      v = spread(rng, type, v) / scales.v;
      // The code that quantising never makes, but others' caches may hold.
      if (type == DataType::kInt4 && !is_extreme() && rng.below(16) == 0) k = -8;
      if (type == DataType::kInt4 && rng.below(16) == 0) v = -8;
    }
    if (i < options_.spec.head_size) k_row[i] = round_to_type(type, k);
    if (i < head_size_v) v_row[i] = round_to_type(type, v);
  }
  return scales;
}

std::array<float, 4> ValueSource::draw_ds_mla(SplitMix64& rng, float* row) const {
  const DataType type = options_.spec.kv_dtype;
  const float uniform_most = 1.0f / std::sqrt(static_cast<float>(options_.spec.head_size));
  const bool is_negative = options_.logits == LogitRegime::kLow ||
                           (options_.logits == LogitRegime::kMixed && (rng.next() >> 63) != 0);
  // A power of two beside large scores, for all: q.k stays exact.
  const float extreme_scale = std::exp2(std::ceil(std::log2(extreme_scale_)));
  std::array<float, 4> scales = {};
  for (float& scale : scales) {
    const float greatest = options_.vllm_values ? uniform_most : margin(rng) * kGreatestNormal;
    const float mantissa = round_to_type(DataType::kFloat16, greatest / greatest_value(type));
    scale = is_extreme() ? extreme_scale
                         : std::ldexp(mantissa, -static_cast<int>(rng.below(kScaleOctaves)));
  }
  const int num_codes = options_.spec.head_size_v;
  const int num_scales = static_cast<int>(scales.size());
  for (int i = 0; i < options_.spec.head_size; ++i) {
    const float drawn = options_.vllm_values ? uniform_most * rng.uniform() : small_value(rng);
    if (i < num_codes) {
      const float scale = scales[static_cast<size_t>(i / (num_codes / num_scales))];
      row[i] = round_to_type(type, is_extreme() ? drawn : spread(rng, type, drawn) / scale);
      continue;
    }
    float value = drawn;
    if (is_extreme_element(i)) value = is_negative ? -extreme_key_ : extreme_key_;
    row[i] = round_to_type(DataType::kBFloat16, is_extreme() ? value * extreme_scale : value);
  }
  return scales;
}

ValueSource::TokenScales ValueSource::draw_token_scales(SplitMix64& rng) const {
  const auto spread_scale = [&](float scale) {
    return std::ldexp(margin(rng) * scale, -static_cast<int>(rng.below(kScaleOctaves)));
  };
  const float greatest = greatest_value(options_.spec.kv_dtype);
  // K is not spread: its elements have one size, and a smaller scale would cut them off.
  const float k = is_extreme() ? extreme_scale_ * (1.02f + 0.02f * rng.uniform())
                               : margin(rng) * kGreatestNormal / greatest;
  return {k, spread_scale(1 / greatest)};
}

void ValueSource::draw_uniform(SplitMix64& rng, DataType type, float* row) const {
  const float most = 1.0f / std::sqrt(static_cast<float>(options_.spec.head_size));
  for (int i = 0; i < options_.spec.head_size; ++i) {
    row[i] = round_to_type(type, most * rng.uniform());
  }
}

// Where K's rows hold V, elements of K alone, if there are any: else a result would be a few large
// elements that have the error of one sum of probabilities in common, and the rest beside them, and
// the naive computation's error by chance much smaller.
bool ValueSource::is_extreme_element(int i) const {
  if (!is_extreme()) return false;
  const KernelSpec& spec = options_.spec;
  const int rest = spec.head_size - value_head_size(spec);
  const int begin = spec.latent && rest >= kExtremeElements ? value_head_size(spec) : 0;
  const int distance = (spec.head_size - begin) / kExtremeElements;
  const int place = i - begin;
  return place >= 0 && place % distance == std::min(2, distance - 1) &&
         place / distance < kExtremeElements;
}

// Beside large scores the small part is a multiple of 1/4, its products of 1/16; with |q.k| <
// 2^20 all sums are exact in the 24 bits of float32. Heads beyond 256 have a scale so small that
// |q.k| is up to 2^21: there multiples of 1/2. All types can hold it, but that e5m2 rounds some to
// multiples of 1/2.
float ValueSource::small_value(SplitMix64& rng) const {
  const float value = rng.normal();
  const float steps = options_.spec.head_size <= 256 ? 4.0f : 2.0f;
  return is_extreme() ? std::round(value * steps) / steps : value;
}

// Such that values divided by their scale take the whole range of the type; those of K beside large
// scores such that kExtremeCode makes the score.
void ValueSource::draw_scales() {
  SplitMix64 rng(options_.seed + 3);
  const KernelSpec& spec = options_.spec;
  float q_scale = 1;
  if (is_small(spec.q_dtype) && options_.vllm_values) {
    q_scale_ = {q_scale};
  } else if (is_small(spec.q_dtype)) {
    q_scale = margin(rng) * (is_extreme() ? 0.5f : kGreatestNormal / greatest_value(spec.q_dtype));
    q_scale_ = {q_scale};
  }
  if (is_small(spec.out_dtype)) {
    const float greatest_result = spec.token_scales ? kGreatestMargin : 1.0f;
    out_scale_ = {margin(rng) * greatest_result / greatest_value(spec.out_dtype)};
  }
  if (!is_small(spec.kv_dtype)) return;
  const float greatest = greatest_value(spec.kv_dtype);
  extreme_scale_ = kExtremeScore / (std::abs(scale_) * kExtremeElements * kExtremeQuery *
                                    extreme_code(spec.kv_dtype) * q_scale);
  if (spec.token_scales || spec.kv_layout == KvLayout::kDsMla) return;
  const int64_t num_scales = options_.per_head_scales ? options_.num_kv_heads : 1;
  kv_scale_stride_ = options_.per_head_scales ? kScaleStride : 0;
  const auto size = static_cast<size_t>((num_scales - 1) * kv_scale_stride_ + 1);
  k_scale_.assign(size, std::numeric_limits<float>::quiet_NaN());
  v_scale_ = k_scale_;
  for (int64_t head = 0; head < num_scales; ++head) {
    const auto place = static_cast<size_t>(head * kv_scale_stride_);
    if (options_.vllm_values) {
      k_scale_[place] = v_scale_[place] = 1;
      continue;
    }
    // Up to 4 % more: scores stay below 6e4.
    k_scale_[place] = is_extreme() ? extreme_scale_ * (1.02f + 0.02f * rng.uniform())
                                   : margin(rng) * kGreatestNormal / greatest;
    v_scale_[place] = margin(rng) / greatest;
  }
}

}  // namespace pagejit
