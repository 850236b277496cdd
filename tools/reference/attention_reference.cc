#include "tools/reference/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/reference/half.h"

namespace pagejit {
namespace {

// The state of one query head while its tokens are walked once: the greatest score so far, the sum
// of exp(score - maximum), and the values weighted with the same.
class OnlineSoftmax {
 public:
  explicit OnlineSoftmax(int head_size) : weighted_(static_cast<size_t>(head_size), 0.0) {}

  void add(double score, const uint16_t* v_row, DataType type) {
    if (score > maximum_) {
      const double rescale = std::exp(maximum_ - score);  // exp(-inf) = 0 for the first token
      sum_ *= rescale;
      for (double& value : weighted_) value *= rescale;
      maximum_ = score;
    }
    const double weight = std::exp(score - maximum_);
    sum_ += weight;
    for (size_t i = 0; i < weighted_.size(); ++i) {
      weighted_[i] += weight * decode_half(type, v_row[i]);
    }
  }

  void finish(double* out, double* lse) const {
    const bool empty = sum_ == 0;
    *lse = empty ? -std::numeric_limits<double>::infinity() : maximum_ + std::log(sum_);
    for (size_t i = 0; i < weighted_.size(); ++i) out[i] = empty ? 0.0 : weighted_[i] / sum_;
  }

 private:
  double maximum_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  std::vector<double> weighted_;
};

}  // namespace

void dense_attention(const HeadProblem& problem, double* out, double* lse,
                     HeadMagnitudes* magnitudes) {
  const int head_size = problem.head_size;
  std::fill(out, out + head_size, 0.0);
  *lse = -std::numeric_limits<double>::infinity();
  if (magnitudes != nullptr) *magnitudes = {};
  if (problem.num_tokens == 0) return;

  std::vector<double> scores(static_cast<size_t>(problem.num_tokens));
  double maximum = -std::numeric_limits<double>::infinity();
  double max_abs_score = 0;
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* k_row = problem.k + token * head_size;
    double dot = 0;
    double abs_dot = 0;
    for (int i = 0; i < head_size; ++i) {
      const double product = static_cast<double>(problem.q[i]) * k_row[i];
      dot += product;
      abs_dot += std::abs(product);
    }
    scores[static_cast<size_t>(token)] = dot * problem.scale;
    maximum = std::max(maximum, dot * problem.scale);
    max_abs_score = std::max(max_abs_score, abs_dot * std::abs(problem.scale));
  }

  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - maximum);
    sum += score;
  }
  std::vector<double> abs_values(static_cast<size_t>(head_size), 0.0);
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* v_row = problem.v + token * head_size;
    const double weight = scores[static_cast<size_t>(token)] / sum;
    for (int i = 0; i < head_size; ++i) {
      out[i] += weight * v_row[i];
      abs_values[static_cast<size_t>(i)] += weight * std::abs(v_row[i]);
    }
  }
  *lse = maximum + std::log(sum);
  if (magnitudes != nullptr) {
    magnitudes->max_abs_score = max_abs_score;
    magnitudes->max_abs_value = *std::max_element(abs_values.begin(), abs_values.end());
  }
}

void naive_attention(DataType type, const HeadProblem& problem, float* out) {
  const int head_size = problem.head_size;
  std::fill(out, out + head_size, 0.0f);
  if (problem.num_tokens == 0) return;

  std::vector<float> weights(static_cast<size_t>(problem.num_tokens));
  float maximum = -std::numeric_limits<float>::infinity();
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* k_row = problem.k + token * head_size;
    float dot = 0;
    for (int i = 0; i < head_size; ++i) dot += problem.q[i] * k_row[i];
    weights[static_cast<size_t>(token)] = dot * problem.scale;
    maximum = std::max(maximum, dot * problem.scale);
  }
  float sum = 0;
  for (float& weight : weights) {
    weight = std::exp(weight - maximum);
    sum += weight;
  }
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* v_row = problem.v + token * head_size;
    const float weight = round_to_half(type, weights[static_cast<size_t>(token)] / sum);
    for (int i = 0; i < head_size; ++i) out[i] += weight * v_row[i];
  }
  for (int i = 0; i < head_size; ++i) out[i] = round_to_half(type, out[i]);
}

void paged_attention(const KernelSpec& spec, const DecodeArgs& args, double* out, double* lse) {
  const int num_heads = args.num_kv_heads * spec.group_size;
  const auto* q = static_cast<const uint16_t*>(args.q);
  const auto* k_cache = static_cast<const uint16_t*>(args.k_cache);
  const auto* v_cache = static_cast<const uint16_t*>(args.v_cache);
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const int32_t* table_row = args.block_table + seq * args.block_table_stride;
    for (int head = 0; head < num_heads; ++head) {
      const uint16_t* q_row = q + seq * args.q_stride_seq + head * args.q_stride_head;
      const int kv_head = head / spec.group_size;
      OnlineSoftmax softmax(spec.head_size);
      for (int token = 0; token < args.seq_lens[seq]; ++token) {
        const int64_t block = table_row[token / spec.block_size];
        const int64_t offset = token % spec.block_size;
        const uint16_t* k_row = k_cache + block * args.k_strides.block +
                                offset * args.k_strides.token + kv_head * args.k_strides.head;
        const uint16_t* v_row = v_cache + block * args.v_strides.block +
                                offset * args.v_strides.token + kv_head * args.v_strides.head;
        double dot = 0;
        for (int i = 0; i < spec.head_size; ++i) {
          dot += static_cast<double>(decode_half(spec.q_dtype, q_row[i])) *
                 decode_half(spec.kv_dtype, k_row[i]);
        }
        softmax.add(dot * args.scale, v_row, spec.kv_dtype);
      }
      const int64_t row = static_cast<int64_t>(seq) * num_heads + head;
      softmax.finish(out + row * spec.head_size, lse + row);
    }
  }
}

}  // namespace pagejit
