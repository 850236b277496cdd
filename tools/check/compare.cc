#include "tools/check/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

// The rule: twice the naive error.
constexpr double kYardsticks = 2;
// Below so many elements of a query token's result the naive errors are a chance sample, whose
// maximum may fall well below what the same roundings do to the kernel; there the limit is at least
// the a-priori bound of these roundings.
constexpr int64_t kSampleElements = 512;

constexpr double kFloatRoundoff = 0x1p-24;

// Error bound of lse = ln2 * (m + log2(sum)), m and the exponents in base 2, all in float32; 0 for
// -inf, which must be met:
// - the score, its product with scale * log2(e), that factor itself, the sum m + log2, the product
//   with ln 2 and that constant are each rounded once, and the exponents' differences once more: 8
//   roundings of the size of the greatest score. The scales of q and K make the factor a product of
//   more, which 8 still holds: beside large scores q.k is exact, else the next bound is far
//   greater;
// - q.k over head_size products and the sum over n tokens: the probabilistic bound 4 * sqrt(count)
//   roundings (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019, with
//   lambda = 4), of the size of sum |q_i k_i| and of the sum. The tensor core truncates, 2
//   roundings for each 16 products, which is less for head_size <= 256;
// - an f32 q is rounded to the compute type, each q_i k_i by its unit roundoff;
// - ex2.approx and lg2.approx: 2^-22 each (PTX ISA).
//
// `score_error`: that of the products q.k, relative to max_abs_score.
double lse_tolerance(const HeadMagnitudes& magnitudes, double lse, int64_t num_tokens,
                     double score_error) {
  if (std::isinf(lse)) return 0;
  const auto num_terms = static_cast<double>(num_tokens + 1);  // and a sink
  const double size = std::max(1.0, std::abs(lse)) + std::log(num_terms);
  const double roundings = 8 * size + 4 * std::sqrt(num_terms);
  return roundings * kFloatRoundoff + score_error * magnitudes.max_abs_score + 2 * 0x1p-22;
}

// The parts of the above that concern q.k; 0 where make_attention_batch() makes them exact, which
// it does beside large scores, for the default scale only. There q is exact in the compute type,
// too.
double relative_score_error(const BatchOptions& options) {
  if (options.logits != LogitRegime::kNormal && options.scale == 0) return 0;
  const KernelSpec& spec = options.spec;
  const double of_sum = 4 * std::sqrt(static_cast<double>(spec.head_size)) * kFloatRoundoff;
  const bool rounds_q = spec.q_dtype == DataType::kFloat32;
  return of_sum + (rounds_q ? unit_roundoff(compute_type(spec)) : 0);
}

// The numbers of one query token.
struct QueryErrors {
  double max_error = 0;
  double sum = 0;
  double naive_max = 0;
  double naive_sum = 0;
  double rounding = 0;
  double sum_error = 0;  // relative, of the softmax's sum, where it is not that of the operands too
  double sum_of_values = 0;
  WorstPosition worst;
};

std::string format_failure(const WorstPosition& at, const char* what, double error, double limit) {
  char text[256];
  std::snprintf(
      text, sizeof text,
      "%s at sequence %d, query token %d, head %d, element %d: got %.9g, want %.9g, error "
      "%.3g > %.3g",
      what, at.seq, at.query, at.head, at.element, at.got, at.want, error, limit);
  return text;
}

// Collects failures; the first one is told.
class Verdict {
 public:
  void fail(std::string text) {
    if (num_failures_++ == 0) first_ = std::move(text);
  }
  bool passed() const { return num_failures_ == 0; }
  std::string sentence(const CheckReport& report) const {
    char text[320];
    std::snprintf(text, sizeof text,
                  "%s: %lld elements of %lld tokens, %d split%s: max error %.3g (naive %.3g), mean "
                  "%.3g (naive %.3g), lse %.3g (allowed %.3g)",
                  passed() ? "passed" : "FAILED", static_cast<long long>(report.elements),
                  static_cast<long long>(report.tokens), report.num_splits,
                  report.num_splits == 1 ? "" : "s", report.max_error, report.naive_max_error,
                  report.mean_error, report.naive_mean_error, report.lse_max_error,
                  report.lse_tolerance);
    std::string all = text;
    if (!passed()) all += "; " + first_;
    if (num_failures_ > 1) all += " (and " + std::to_string(num_failures_ - 1) + " more)";
    return all;
  }

 private:
  int num_failures_ = 0;
  std::string first_;
};

QueryErrors errors_of_query(const AttentionBatch& batch, const ReferenceResults& reference,
                            const ElementBuffer& out, int query) {
  const int head_size = batch.head_size_v();
  const float out_scale = batch.out_scale.empty() ? 1.0f : batch.out_scale[0];
  const int seq = batch.seq_of(query);
  QueryErrors errors;
  for (int head = 0; head < batch.num_heads; ++head) {
    const int64_t row = int64_t{query} * batch.num_heads + head;
    const int64_t got_row = batch.out_index(query, head);
    errors.rounding = std::max(errors.rounding, reference.rounding[static_cast<size_t>(row)]);
    // Scales of V's tokens are part of the operands, which are relative to the greatest product
    // with a scale: rounded to f16, they lose what the float32 sum keeps, the error that lse may
    // have. Eager code multiplies V's elements, so that one key alone has a probability of
    // exactly 1.
    if (batch.options.spec.token_scales) {
      errors.sum_error =
          std::max(errors.sum_error, reference.lse_tolerance[static_cast<size_t>(row)]);
    }
    for (int i = 0; i < head_size; ++i) {
      const auto index = static_cast<size_t>(row * head_size + i);
      const double want = reference.out[index];
      const double got = out.at(got_row + i) * out_scale;
      const double error = std::abs(got - want);
      const double naive = std::abs(reference.naive[index] - want);
      // The first NaN stays the worst.
      if (errors.worst.seq < 0 || (!std::isnan(errors.max_error) && !(error <= errors.max_error))) {
        errors.max_error = error;
        errors.worst = {seq, query, head, i, got, want};
      }
      errors.sum += error;
      errors.sum_of_values += std::abs(want);
      errors.naive_max = std::max(errors.naive_max, naive);
      errors.naive_sum += naive;
    }
  }
  return errors;
}

// Infinite where nothing is allowed, and for NaN.
double ratio_of(double error, double limit) {
  if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  if (error <= limit) return limit > 0 ? error / limit : 0;
  return limit > 0 ? error / limit : std::numeric_limits<double>::infinity();
}

// Adds one query token to the report and judges it; roundoff is that of the result's type.
void judge_query(const QueryErrors& errors, int64_t num_elements, double roundoff,
                 CheckReport& report, Verdict& verdict) {
  const double mean_error = errors.sum / static_cast<double>(num_elements);
  const double naive_mean = errors.naive_sum / static_cast<double>(num_elements);
  const double floor = num_elements < kSampleElements ? errors.rounding : 0;
  // The result is rounded at last, which at a greater element takes a greater error: where naive
  // errors are great at smaller elements only, twice of them may not hold that.
  const double last_rounding =
      errors.naive_max + (roundoff + errors.sum_error) * std::abs(errors.worst.want);
  const double limit = std::max({kYardsticks * errors.naive_max, last_rounding, floor});
  const double mean_of_sum_error =
      errors.sum_error * errors.sum_of_values / static_cast<double>(num_elements);
  const double mean_limit =
      std::max({kYardsticks * naive_mean, naive_mean + mean_of_sum_error, floor});
  if (std::isnan(errors.max_error)) {
    verdict.fail(format_failure(errors.worst, "NaN", errors.max_error, limit));
  } else if (errors.max_error > limit) {
    verdict.fail(format_failure(errors.worst, "error", errors.max_error, limit));
  } else if (mean_error > mean_limit) {
    verdict.fail(
        format_failure(errors.worst, "mean error of the query token", mean_error, mean_limit));
  }
  const double ratio =
      std::max(ratio_of(errors.max_error, limit), ratio_of(mean_error, mean_limit));
  if (report.worst.seq < 0 || ratio > report.worst_ratio) {
    report.worst = errors.worst;
    report.worst_ratio = ratio;
  }
  // A NaN stays.
  if (!(errors.max_error <= report.max_error)) report.max_error = errors.max_error;
  report.naive_max_error = std::max(report.naive_max_error, errors.naive_max);
  report.mean_error += errors.sum;  // divided at the end
  report.naive_mean_error += errors.naive_sum;
  report.elements += num_elements;
}

void judge_lse(const AttentionBatch& batch, const ReferenceResults& reference,
               const std::vector<float>& lse, CheckReport& report, Verdict& verdict) {
  for (size_t row = 0; row < reference.lse.size(); ++row) {
    const double got = lse[row + AttentionBatch::kLseGuard];
    const double want = reference.lse[row];
    const double tolerance = reference.lse_tolerance[row];
    const double error = got == want ? 0 : std::abs(got - want);  // -inf == -inf
    const int query = static_cast<int>(row / static_cast<size_t>(batch.num_heads));
    const int head = static_cast<int>(row % static_cast<size_t>(batch.num_heads));
    if (!(error <= tolerance)) {
      verdict.fail(format_failure({batch.seq_of(query), query, head, -1, got, want}, "lse", error,
                                  tolerance));
    }
    report.worst_ratio = std::max(report.worst_ratio, ratio_of(error, tolerance));
    if (!(error <= report.lse_max_error) || report.lse_tolerance == 0) {
      report.lse_max_error = error;
      report.lse_tolerance = tolerance;
    }
  }
}

}  // namespace

ReferenceResults compute_reference(const AttentionBatch& batch) {
  const KernelSpec& spec = batch.options.spec;
  const auto head_size = static_cast<size_t>(spec.head_size);
  const auto num_rows =
      static_cast<size_t>(batch.num_queries) * static_cast<size_t>(batch.num_heads);
  ReferenceResults results;
  const auto head_size_v = static_cast<size_t>(batch.head_size_v());
  results.out.resize(num_rows * head_size_v);
  results.naive.resize(num_rows * head_size_v);
  results.lse.resize(num_rows);
  results.lse_tolerance.resize(num_rows);
  results.rounding.resize(num_rows);
  const DataType factor_type = compute_type(spec);
  const double score_error = relative_score_error(batch.options);
  // K and V are of the factors' type, but where each row has scales.
  std::vector<std::vector<float>> rounded_k;
  std::vector<std::vector<float>> rounded_v;
  const bool rounds_kv = spec.kv_layout == KvLayout::kDsMla;
  if (rounds_kv) {
    rounded_k = batch.dense_k;
    rounded_v = batch.dense_v;
    for (auto* all : {&rounded_k, &rounded_v}) {
      for (std::vector<float>& rows : *all) {
        for (float& element : rows) element = round_to_type(factor_type, element);
      }
    }
  }
  std::vector<float> q(head_size);
  for (size_t row = 0; row < num_rows; ++row) {
    const int query = static_cast<int>(row / static_cast<size_t>(batch.num_heads));
    const int head = static_cast<int>(row % static_cast<size_t>(batch.num_heads));
    const int seq = batch.seq_of(query);
    const AttentionBatch::Sight sight = batch.sight_of(query);
    for (int i = 0; i < spec.head_size; ++i) {
      q[static_cast<size_t>(i)] = batch.q.at(batch.q_index(query, head) + i);
    }
    const int64_t seq_len = batch.seq_lens[static_cast<size_t>(seq)];
    const int64_t num_tokens = sight.end - sight.begin;
    const int64_t first = head / spec.group_size * seq_len + sight.begin;
    const auto dense = [&](const std::vector<std::vector<float>>& all, size_t row_elements) {
      return all[static_cast<size_t>(seq)].data() + first * static_cast<int64_t>(row_elements);
    };
    const std::vector<uint8_t> seen = batch.seen_by(query, head, sight);
    const std::vector<float> biases = batch.bias_of(query, sight);
    ScoreRules rules{.scale = batch.scale};
    if (spec.soft_cap) rules.soft_cap = batch.soft_cap;
    if (spec.alibi) rules.alibi_slope = batch.alibi_slopes[static_cast<size_t>(head)];
    if (spec.sinks) rules.sink = batch.sinks[static_cast<size_t>(head)];
    HeadProblem problem{.q = q.data(),
                        .k = dense(batch.dense_k, head_size),
                        .v = dense(batch.dense_v, head_size_v),
                        .num_tokens = num_tokens,
                        .head_size = spec.head_size,
                        .head_size_v = batch.head_size_v(),
                        .rules = rules,
                        .first_distance = sight.begin - sight.position,
                        .seen = seen.empty() ? nullptr : seen.data(),
                        .biases = biases.empty() ? nullptr : biases.data(),
                        .scales = batch.scales_of(head / spec.group_size)};
    if (spec.token_scales) {
      problem.k_scales = dense(batch.dense_k_scale, 1);
      problem.v_scales = dense(batch.dense_v_scale, 1);
    }
    HeadMagnitudes magnitudes;
    dense_attention(problem, results.out.data() + row * head_size_v, &results.lse[row],
                    &magnitudes);
    if (rounds_kv) {
      problem.k = dense(rounded_k, head_size);
      problem.v = dense(rounded_v, head_size_v);
    }
    naive_attention(factor_type, spec.out_dtype, problem, results.naive.data() + row * head_size_v);
    results.lse_tolerance[row] =
        lse_tolerance(magnitudes, results.lse[row], num_tokens, score_error);
    // P is rounded once, |sum p v| <= sum p |v|, and the result once; V too where it has scales.
    results.rounding[row] =
        ((rounds_kv ? 2 : 1) * unit_roundoff(factor_type) + unit_roundoff(spec.out_dtype)) *
        magnitudes.max_abs_value;
  }
  return results;
}

CheckReport compare_results(const AttentionBatch& batch, const ReferenceResults& reference,
                            const AttentionResults& results, bool with_lse, int num_splits) {
  CheckReport report;
  report.num_splits = num_splits;
  Verdict verdict;
  const int64_t num_elements = int64_t{batch.num_heads} * batch.head_size_v();
  for (int32_t seq_len : batch.seq_lens) report.tokens += seq_len;
  for (int query = 0; query < batch.num_queries; ++query) {
    judge_query(errors_of_query(batch, reference, results.out, query), num_elements,
                unit_roundoff(batch.options.spec.out_dtype), report, verdict);
  }
  report.mean_error /= static_cast<double>(report.elements);
  report.naive_mean_error /= static_cast<double>(report.elements);
  if (with_lse) judge_lse(batch, reference, results.lse, report, verdict);
  if (Status status = check_untouched(batch, results.out, results.lse, with_lse); !status) {
    verdict.fail(status.message());
  }
  report.passed = verdict.passed();
  report.sentence = verdict.sentence(report);
  return report;
}

}  // namespace pagejit
