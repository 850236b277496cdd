// What attention should give: three computations on the host.
//   dense_attention   float64, plain loops over contiguous K and V: the truth.
//   paged_attention   float64, online softmax that walks the block table: must equal the first.
//   naive_attention   in the types that kernels compute in, as an engine's eager code does it: its
//   error is the yardstick for kernels.
// Not fast, and no code is shared with the kernels. Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <limits>

#include "pagejit/launch.h"
#include "pagejit/spec.h"

namespace pagejit {

// Whether the query token at `position` of a sequence sees the key at position `key`, by causality,
// window, chunk and ranges alone. `args` has host pointers.
bool sees_key(const KernelSpec& spec, const AttentionArgs& args, int seq, bool is_causal,
              int64_t position, int64_t key);

// What becomes of a product q.k before the softmax: score = scale * q.k; soft_cap * tanh(score /
// soft_cap); + slope * (key position - query position).
struct ScoreRules {
  float scale = 0;
  float soft_cap = 0;  // 0: none
  float alibi_slope = 0;
  // One more logit without a value.
  float sink = -std::numeric_limits<float>::infinity();

  double score(double dot, int64_t distance) const;
  // The same, each step rounded to float32.
  float score_in_float(float dot, int64_t distance) const;
};

// What elements are multiplied with to give values.
struct ElementScales {
  float q = 1;
  float k = 1;
  float v = 1;
  float out = 1;
};

// One query head of one query token, with the keys that it sees. Elements of narrow types widened
// to float32, which is exact, and without their scales.
struct HeadProblem {
  const float* q = nullptr;  // [head_size]
  const float* k = nullptr;  // [num_tokens, head_size]
  const float* v = nullptr;  // [num_tokens, head_size_v]
  int64_t num_tokens = 0;
  int head_size = 0;
  int head_size_v = 0;
  ScoreRules rules;
  int64_t first_distance = 0;  // position of the first key, counted from the query's
  // [num_tokens]: 0 = not seen after all. Null: all are.
  const uint8_t* seen = nullptr;
  // [num_tokens]: added to the scores; -inf: not seen after all, and not looked at where not seen.
  // Null: 0.
  const float* biases = nullptr;
  ElementScales scales = {};
  // [num_tokens]: of each token's key and value, beside those. Null: 1.
  const float* k_scales = nullptr;
  const float* v_scales = nullptr;

  float k_scale(int64_t token) const { return k_scales == nullptr ? 1.0f : k_scales[token]; }
  float v_scale(int64_t token) const { return v_scales == nullptr ? 1.0f : v_scales[token]; }
  float bias(int64_t token) const { return biases == nullptr ? 0.0f : biases[token]; }
  bool sees(int64_t token) const {
    if (seen != nullptr && seen[token] == 0) return false;
    return biases == nullptr || biases[token] != -std::numeric_limits<float>::infinity();
  }
};

// What rounding can do to a head's result; see tools/check/tolerance.h.
struct HeadMagnitudes {
  double max_abs_score = 0;  // max over tokens of scale * sum of |q_i * k_i|, and of |score|
  double max_abs_value = 0;  // max over elements of sum over tokens of p * |v|
};

// out[i] = sum_t p_t v_t[i], p = softmax(score_t), and lse = ln sum_t exp(score_t), where the sink
// takes part in both sums. No tokens: out = 0, lse = the sink, or -inf. `out` is [head_size_v];
// `magnitudes` may be null.
void dense_attention(const HeadProblem& problem, double* out, double* lse,
                     HeadMagnitudes* magnitudes = nullptr);

// What the factors of matrix products are rounded to: bf16 where rows are those of
// KvLayout::kDsMla, as an engine's gathered rows are; f16 where K and V have 8 bits; else their
// type.
DataType compute_type(const KernelSpec& spec);

// Scores, softmax and sums in float32; q and P rounded to `compute_type`, the result to `out_type`.
// Scales are applied to sums, so K and V are not rounded. q of bf16 with an f16 compute type stays
// as it is but for numbers below 2^-14.
void naive_attention(DataType compute_type, DataType out_type, const HeadProblem& problem,
                     float* out);

// All sequences and heads of one launch. The pointers of `args` are host pointers; q and the caches
// have the types of `spec`; args.out, args.lse, the workspace and the split fields are not looked
// at. `out` is [query tokens, num_heads, head_size_v], `lse` [query tokens, num_heads], both
// contiguous. Each key is masked by the definition of what a query sees, one by one.
void paged_attention(const KernelSpec& spec, const AttentionArgs& args, double* out, double* lse);

}  // namespace pagejit
