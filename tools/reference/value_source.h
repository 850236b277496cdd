// ValueSource: draws the elements of q, K and V of one batch, and the scales of those of 8 bits. Of
// use to BatchBuilder only. Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/reference/attention_batch.h"
#include "tools/reference/random.h"

namespace pagejit {

class ValueSource {
 public:
  // `scale` is the batch's. Draws the scales.
  ValueSource(const BatchOptions& options, float scale);

  // As AttentionBatch has them.
  const std::vector<float>& q_scale() const { return q_scale_; }
  const std::vector<float>& k_scale() const { return k_scale_; }
  const std::vector<float>& v_scale() const { return v_scale_; }
  const std::vector<float>& out_scale() const { return out_scale_; }
  int64_t kv_scale_stride() const { return kv_scale_stride_; }

  // Fill a row of head_size (head_size_v) elements: representable in the type of q (k, v), without
  // its scale. The numbers come from `rng`. A token's scales are drawn too where the spec has
  // token_scales.
  struct TokenScales {
    float k = 1;
    float v = 1;
  };
  void draw_q(SplitMix64& rng, float* row) const;
  TokenScales draw_k_and_v(SplitMix64& rng, int64_t kv_head, float* k_row, float* v_row) const;
  // Of KvLayout::kDsMla: 512 elements without their scales, each of 128 of them, and 64 of bf16. A
  // scale has 11 digits, so that float32 holds its products with e4m3 and bf16 does not.
  std::array<float, 4> draw_ds_mla(SplitMix64& rng, float* row) const;

 private:
  void draw_uniform(SplitMix64& rng, DataType type, float* row) const;
  bool is_extreme() const { return options_.logits != LogitRegime::kNormal; }
  bool is_extreme_element(int i) const;
  float small_value(SplitMix64& rng) const;
  TokenScales draw_token_scales(SplitMix64& rng) const;
  void draw_scales();

  BatchOptions options_;
  float scale_;
  float extreme_key_ = 0;  // without a scale
  std::vector<float> q_scale_;
  std::vector<float> k_scale_;
  std::vector<float> v_scale_;
  std::vector<float> out_scale_;
  float extreme_scale_ = 1;  // that of K which makes an extreme element an extreme score
  int64_t kv_scale_stride_ = 0;
};

}  // namespace pagejit
