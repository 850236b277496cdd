#include "tools/reference/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

// An array of a launch.
struct Elements {
  DataType type;
  const void* start;
  double scale = 1;

  double at(int64_t index) const { return load_element(type, start, index) * scale; }
};

// The state of one query head while its tokens are walked once: the greatest score so far, the sum
// of exp(score - maximum), and the values weighted with the same.
class OnlineSoftmax {
 public:
  explicit OnlineSoftmax(int head_size) : weighted_(static_cast<size_t>(head_size), 0.0) {}

  // A logit without a value.
  double add(double score) {
    if (score > maximum_) {
      const double rescale = std::exp(maximum_ - score);  // exp(-inf) = 0 for the first token
      sum_ *= rescale;
      for (double& value : weighted_) value *= rescale;
      maximum_ = score;
    }
    const double weight = std::exp(score - maximum_);
    sum_ += weight;
    return weight;
  }

  // `value` gives element i of the value.
  void add(double score, const auto& value) {
    const double weight = add(score);
    for (size_t i = 0; i < weighted_.size(); ++i)
      weighted_[i] += weight * value(static_cast<int>(i));
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

// Which query tokens a sequence has, and whether it is causal.
struct SequenceQueries {
  int begin = 0;
  int end = 0;
  bool is_causal = false;
};

SequenceQueries queries_of(const KernelSpec& spec, const AttentionArgs& args, int seq) {
  if (spec.queries == QueryLengths::kOne) return {seq, seq + 1, false};
  const bool flagged = spec.causality == Causality::kPerSequence && args.causal_flags[seq] != 0;
  return {args.query_start_loc[seq], args.query_start_loc[seq + 1],
          spec.causality == Causality::kCausal || flagged};
}

// Whether the key at position `key` is in the window or chunk of the query at `position`.
bool in_window(const KernelSpec& spec, const AttentionArgs& args, int64_t position, int64_t key) {
  const int64_t distance = key - position;
  if (spec.chunked) return position >= 0 && key / args.chunk_size == position / args.chunk_size;
  if (!spec.window) return true;
  if (args.window_left >= 0 && -distance > args.window_left) return false;
  return args.window_right < 0 || distance <= args.window_right;
}

// Whether one of the sequence's ranges holds both positions.
bool in_same_range(const AttentionArgs& args, int seq, int64_t position, int64_t key) {
  for (int i = 0; i < args.max_bidirectional_ranges; ++i) {
    const int32_t* range =
        args.bidirectional_ranges + seq * args.bidirectional_ranges_stride + int64_t{2} * i;
    if (range[0] <= position && position < range[1] && range[0] <= key && key < range[1]) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool sees_key(const KernelSpec& spec, const AttentionArgs& args, int seq, bool is_causal,
              int64_t position, int64_t key) {
  const bool is_before = !is_causal || key <= position;
  const bool is_near = in_window(spec, args, position, key);
  if (!spec.bidirectional_ranges) return is_before && is_near;
  const bool shares_range = in_same_range(args, seq, position, key);
  if (args.ranges_within_window) return (is_before || shares_range) && is_near;
  return (is_before && is_near) || shares_range;
}

namespace {

// The definition of block-sparse attention (launch.h), for one query head.
bool sees_sparse(const BlockSparseArgs& sparse, const KernelSpec& spec, int num_kv_heads, int head,
                 int64_t position, int64_t key) {
  const int64_t key_block = key / sparse.block_size;
  // Rounded down: a position before the first key is in a block before all others.
  const int64_t shifted = position - (position < 0 ? sparse.block_size - 1 : 0);
  const int64_t query_block = shifted / sparse.block_size;
  if (key_block > query_block - sparse.local_blocks) return true;
  const int64_t num_heads = int64_t{num_kv_heads} * spec.group_size;
  int64_t offset = (sparse.tp_rank * num_heads + head) * sparse.head_sliding_step + 1;
  if (sparse.head_sliding_step < 0) {
    const int64_t kv_head = head / spec.group_size;
    offset = (int64_t{sparse.tp_rank} * num_kv_heads + kv_head) * -sparse.head_sliding_step + 1;
  }
  return (key_block + offset) % sparse.vert_stride == 0;
}

int length_of(const KernelSpec& spec, const AttentionArgs& args, int seq) {
  switch (spec.kv_table) {
    case KvTable::kBlocks:
      return args.seq_lens[seq];
    case KvTable::kCsr: {
      const int num_blocks = args.kv_indptr[seq + 1] - args.kv_indptr[seq];
      return num_blocks == 0 ? 0 : (num_blocks - 1) * spec.block_size + args.kv_last_block_len[seq];
    }
    case KvTable::kSlots:
    case KvTable::kPositions:
      return args.seq_lens == nullptr ? args.max_list_len : args.seq_lens[seq];
    case KvTable::kContiguous:
      return args.kv_start_loc[seq + 1] - args.kv_start_loc[seq];
  }
  return 0;
}

// Where a token's row of the first KV head starts, or its scale.
int64_t row_offset(const KernelSpec& spec, const AttentionArgs& args, int seq, int token,
                   const KvStrides& strides, int64_t token_stride) {
  if (spec.kv_table == KvTable::kContiguous) {
    return (args.kv_start_loc[seq] + token) * strides.token;
  }
  int place = token;
  if (spec.kv_table == KvTable::kSlots || spec.kv_table == KvTable::kPositions) {
    place = args.token_lists[seq * args.token_list_stride + token];
    if (spec.kv_table == KvTable::kSlots) {
      return place / spec.block_size * strides.block + place % spec.block_size * token_stride;
    }
    if (args.query_seqs != nullptr) seq = args.query_seqs[seq];
  }
  const int position = place / spec.block_size;
  const int64_t block = spec.kv_table == KvTable::kCsr
                            ? args.kv_indices[args.kv_indptr[seq] + position]
                            : args.block_table[seq * args.block_table_stride + position];
  return block * strides.block + place % spec.block_size * token_stride;
}

int64_t row_offset(const KernelSpec& spec, const AttentionArgs& args, int seq, int token,
                   bool is_key) {
  const KvStrides& strides = is_key ? args.k_strides : args.v_strides;
  const int64_t vllm_stride = is_key ? 16 / data_type_bytes(spec.kv_dtype) : 1;
  const int64_t token_stride = spec.kv_layout == KvLayout::kVllm ? vllm_stride : strides.token;
  return row_offset(spec, args, seq, token, strides, token_stride);
}

// From one element of a value to the next.
int64_t value_step(const KernelSpec& spec) {
  return spec.kv_layout == KvLayout::kVllm ? spec.block_size : 1;
}

// Where element i of a key lies from its first one.
int64_t key_offset(const KernelSpec& spec, int i) {
  if (spec.kv_layout != KvLayout::kVllm) return i;
  const int x = 16 / data_type_bytes(spec.kv_dtype);
  return int64_t{i / x} * spec.block_size * x + i % x;
}

// Element i of a row of KvLayout::kDsMla that begins at byte `row`.
double ds_mla_element(const void* cache, int64_t row, int i) {
  const uint8_t* bytes = static_cast<const uint8_t*>(cache) + row;
  if (i >= 512) return load_element(DataType::kBFloat16, bytes + 528, i - 512);
  return load_element(DataType::kFloat8E4m3, bytes, i) *
         load_element(DataType::kFloat32, bytes + 512, i / 128);
}

ScoreRules rules_of(const KernelSpec& spec, const AttentionArgs& args, int head) {
  ScoreRules rules;
  rules.scale = args.scale;
  if (spec.soft_cap) rules.soft_cap = args.soft_cap;
  if (spec.alibi) rules.alibi_slope = args.alibi_slopes[head];
  if (spec.sinks) rules.sink = args.sinks[head];
  return rules;
}

}  // namespace

double ScoreRules::score(double dot, int64_t distance) const {
  double score = dot * scale;
  if (soft_cap != 0) score = soft_cap * std::tanh(score / soft_cap);
  return score + static_cast<double>(alibi_slope) * static_cast<double>(distance);
}

float ScoreRules::score_in_float(float dot, int64_t distance) const {
  float score = dot * scale;
  if (soft_cap != 0) score = soft_cap * std::tanh(score / soft_cap);
  if (alibi_slope == 0) return score;
  const float bias = alibi_slope * static_cast<float>(distance);
  return score + bias;
}

void dense_attention(const HeadProblem& problem, double* out, double* lse,
                     HeadMagnitudes* magnitudes) {
  const int head_size = problem.head_size;
  const int head_size_v = problem.head_size_v;
  std::fill(out, out + head_size_v, 0.0);
  const ScoreRules& rules = problem.rules;
  *lse = rules.sink;
  if (magnitudes != nullptr) *magnitudes = {};
  if (problem.num_tokens == 0) return;

  std::vector<double> scores(static_cast<size_t>(problem.num_tokens));
  double maximum = rules.sink;
  double max_abs_score = 0;
  const double qk_scale = static_cast<double>(problem.scales.q) * problem.scales.k;
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* k_row = problem.k + token * head_size;
    double dot = 0;
    double abs_dot = 0;
    const double token_scale = qk_scale * problem.k_scale(token);
    for (int i = 0; i < head_size; ++i) {
      const double product = token_scale * problem.q[i] * k_row[i];
      dot += product;
      abs_dot += std::abs(product);
    }
    const double score =
        problem.sees(token) ? rules.score(dot, problem.first_distance + token) + problem.bias(token)
                            : -std::numeric_limits<double>::infinity();
    scores[static_cast<size_t>(token)] = score;
    if (!problem.sees(token)) continue;
    maximum = std::max(maximum, score);
    max_abs_score = std::max({max_abs_score, abs_dot * std::abs(rules.scale), std::abs(score)});
  }

  if (std::isinf(maximum)) return;  // nothing is seen
  double sum = std::exp(rules.sink - maximum);
  for (double& score : scores) {
    score = std::exp(score - maximum);
    sum += score;
  }
  std::vector<double> abs_values(static_cast<size_t>(head_size_v), 0.0);
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* v_row = problem.v + token * head_size_v;
    const double weight = scores[static_cast<size_t>(token)] / sum * problem.v_scale(token);
    for (int i = 0; i < head_size_v; ++i) {
      const double value = static_cast<double>(problem.scales.v) * v_row[i];
      out[i] += weight * value;
      abs_values[static_cast<size_t>(i)] += weight * std::abs(value);
    }
  }
  *lse = maximum + std::log(sum);
  if (magnitudes != nullptr) {
    magnitudes->max_abs_score = max_abs_score;
    magnitudes->max_abs_value = *std::max_element(abs_values.begin(), abs_values.end());
  }
}

DataType compute_type(const KernelSpec& spec) {
  if (spec.kv_layout == KvLayout::kDsMla) return DataType::kBFloat16;
  return data_type_bytes(spec.kv_dtype) == 1 ? DataType::kFloat16 : spec.kv_dtype;
}

void naive_attention(DataType compute_type, DataType out_type, const HeadProblem& problem,
                     float* out) {
  const int head_size = problem.head_size;
  const int head_size_v = problem.head_size_v;
  std::fill(out, out + head_size_v, 0.0f);
  if (problem.num_tokens == 0) return;

  // One factor, so that an exact q.k is rounded once.
  ScoreRules rules = problem.rules;
  rules.scale *= problem.scales.q * problem.scales.k;
  std::vector<float> q(problem.q, problem.q + head_size);
  for (float& element : q) element = round_to_type(compute_type, element);
  std::vector<float> weights(static_cast<size_t>(problem.num_tokens));
  float maximum = rules.sink;
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* k_row = problem.k + token * head_size;
    float dot = 0;
    for (int i = 0; i < head_size; ++i) dot += q[static_cast<size_t>(i)] * k_row[i];
    dot *= problem.k_scale(token);
    const float score =
        problem.sees(token)
            ? rules.score_in_float(dot, problem.first_distance + token) + problem.bias(token)
            : -std::numeric_limits<float>::infinity();
    weights[static_cast<size_t>(token)] = score;
    maximum = std::max(maximum, score);
  }
  if (std::isinf(maximum)) return;  // nothing is seen
  float sum = std::exp(rules.sink - maximum);
  for (float& weight : weights) {
    weight = std::exp(weight - maximum);
    sum += weight;
  }
  for (int64_t token = 0; token < problem.num_tokens; ++token) {
    const float* v_row = problem.v + token * head_size_v;
    const float weight = round_to_type(compute_type, weights[static_cast<size_t>(token)] / sum);
    for (int i = 0; i < head_size_v; ++i) out[i] += weight * (v_row[i] * problem.v_scale(token));
  }
  const float out_scale = problem.scales.out;
  for (int i = 0; i < head_size_v; ++i) {
    out[i] = round_to_type(out_type, out[i] * problem.scales.v / out_scale) * out_scale;
  }
}

void paged_attention(const KernelSpec& spec, const AttentionArgs& args, double* out, double* lse) {
  const int num_heads = args.num_kv_heads * spec.group_size;
  const int head_size_v = value_head_size(spec);
  const bool q_is_scaled = data_type_bytes(spec.q_dtype) == 1;
  const bool is_ds_mla = spec.kv_layout == KvLayout::kDsMla;
  const bool kv_is_scaled = data_type_bytes(spec.kv_dtype) == 1 && !spec.token_scales && !is_ds_mla;
  const Elements q{spec.q_dtype, args.q, q_is_scaled ? *args.q_scale : 1.0};
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const SequenceQueries queries = queries_of(spec, args, seq);
    const int seq_len = length_of(spec, args, seq);
    for (int query = queries.begin; query < queries.end; ++query) {
      const int64_t query_position = int64_t{seq_len} - (queries.end - query);
      for (int head = 0; head < num_heads; ++head) {
        const int64_t q_row = query * args.q_stride_token + head * args.q_stride_head;
        const int kv_head = head / spec.group_size;
        const int64_t place = kv_head * args.kv_scale_stride;
        Elements k{spec.kv_dtype, args.k_cache, kv_is_scaled ? args.k_scale[place] : 1.0};
        Elements v = k;  // where V lies in K's rows
        if (!spec.latent) {
          v = {spec.kv_dtype, args.v_cache, kv_is_scaled ? args.v_scale[place] : 1.0};
        }
        const ScoreRules rules = rules_of(spec, args, head);
        OnlineSoftmax softmax(head_size_v);
        for (int token = 0; token < seq_len; ++token) {
          const int64_t distance = token - query_position;
          if (!sees_key(spec, args, seq, queries.is_causal, query_position, token)) continue;
          if (args.token_lists != nullptr &&
              args.token_lists[seq * args.token_list_stride + token] < 0) {
            continue;
          }
          if (spec.custom_mask) {
            const int64_t bit = int64_t{query - queries.begin} * seq_len + token;
            const uint8_t byte = args.custom_mask[args.custom_mask_indptr[seq] + bit / 8];
            if ((byte >> (bit % 8) & 1) == 0) continue;
          }
          if (spec.block_sparse && !sees_sparse(args.block_sparse, spec, args.num_kv_heads, head,
                                                query_position, token)) {
            continue;
          }
          const int64_t k_row =
              row_offset(spec, args, seq, token, /*is_key=*/true) + kv_head * args.k_strides.head;
          const int64_t v_row = spec.latent ? k_row
                                            : row_offset(spec, args, seq, token, /*is_key=*/false) +
                                                  kv_head * args.v_strides.head;
          if (spec.token_scales) {
            const auto scale = [&](const float* scales, const KvStrides& strides) {
              return scales[row_offset(spec, args, seq, token, strides, strides.token) +
                            kv_head * strides.head];
            };
            k.scale = scale(args.k_scale, args.k_scale_strides);
            v.scale = scale(args.v_scale, args.v_scale_strides);
          }
          const auto key = [&](int i) {
            return is_ds_mla ? ds_mla_element(args.k_cache, k_row, i)
                             : k.at(k_row + key_offset(spec, i));
          };
          const auto value = [&](int i) {
            return is_ds_mla ? key(i) : v.at(v_row + i * value_step(spec));
          };
          double dot = 0;
          for (int i = 0; i < spec.head_size; ++i) dot += q.at(q_row + i) * key(i);
          double bias = 0;
          const int64_t key_query = token - (seq_len - (queries.end - queries.begin));
          if (spec.qq_bias && key_query >= 0) {
            bias = args.qq_bias[seq * args.qq_bias_stride_seq +
                                (query - queries.begin) * args.qq_bias_stride_row + key_query];
            if (std::isinf(bias)) continue;
          }
          softmax.add(rules.score(dot, distance) + bias, value);
        }
        if (spec.sinks) softmax.add(rules.sink);
        const int64_t row = static_cast<int64_t>(query) * num_heads + head;
        softmax.finish(out + row * head_size_v, lse + row);
      }
    }
  }
}

}  // namespace pagejit
