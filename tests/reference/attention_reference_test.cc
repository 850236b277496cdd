// The references against values worked out by hand, and against each other on random paged batches.
#include "tools/reference/attention_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/reference/paged_and_dense.h"
#include "tools/reference/attention_batch.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One query, k and v of some tokens; head sizes as those have elements.
HeadProblem problem_of(const std::vector<float>& q, const std::vector<float>& k,
                       const std::vector<float>& v, float scale = 1.0f) {
  const size_t num_tokens = k.size() / q.size();
  return {.q = q.data(),
          .k = k.data(),
          .v = v.data(),
          .num_tokens = static_cast<int64_t>(num_tokens),
          .head_size = static_cast<int>(q.size()),
          .head_size_v = static_cast<int>(v.size() / num_tokens),
          .rules = {.scale = scale}};
}

TEST(DenseAttentionTest, OneTokenGivesItsValueAndItsScore) {
  const std::vector<float> q = {2, 3};
  const std::vector<float> k = {0.5, -1};
  const std::vector<float> v = {7, -9};
  double out[2];
  double lse = 0;
  dense_attention(problem_of(q, k, v, 0.25f), out, &lse);
  EXPECT_EQ(out[0], 7);
  EXPECT_EQ(out[1], -9);
  EXPECT_DOUBLE_EQ(lse, (2 * 0.5 - 3) * 0.25);
}

TEST(DenseAttentionTest, TwoTokensByHand) {
  // Scores ln 3 and 0 up to the rounding of ln 3 to float32: weights 3/4 and 1/4.
  const std::vector<float> q = {1, 0};
  const std::vector<float> k = {std::log(3.0f), 5, 0, -5};
  const std::vector<float> v = {4, 0, 8, -4};
  double out[2];
  double lse = 0;
  HeadMagnitudes magnitudes;
  dense_attention(problem_of(q, k, v), out, &lse, &magnitudes);
  EXPECT_NEAR(out[0], 0.75 * 4 + 0.25 * 8, 1e-7);
  EXPECT_NEAR(out[1], 0.25 * -4, 1e-7);
  EXPECT_NEAR(lse, std::log(4.0), 1e-7);
  EXPECT_NEAR(magnitudes.max_abs_score, std::log(3.0), 1e-7);
  EXPECT_NEAR(magnitudes.max_abs_value, 5, 1e-6);
}

TEST(DenseAttentionTest, NoTokensGiveZeroAndMinusInfinity) {
  const std::vector<float> q = {1, 2};
  double out[2] = {5, 5};
  double lse = 5;
  dense_attention({.q = q.data(),
                   .k = nullptr,
                   .v = nullptr,
                   .num_tokens = 0,
                   .head_size = 2,
                   .head_size_v = 2,
                   .rules = {.scale = 1.0f}},
                  out, &lse);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(lse, -kInfinity);
}

TEST(DenseAttentionTest, ScoresOfAMillionDoNotOverflow) {
  const std::vector<float> q = {1000};
  for (float sign : {1.0f, -1.0f}) {
    const std::vector<float> k = {sign * 1000, sign * 1000};
    const std::vector<float> v = {1, 3};
    double out = 0;
    double lse = 0;
    dense_attention(problem_of(q, k, v), &out, &lse);
    EXPECT_DOUBLE_EQ(out, 2);
    EXPECT_DOUBLE_EQ(lse, sign * 1e6 + std::log(2.0));
  }
}

// Elements and scales that are exact in float32 give the values' result.
TEST(DenseAttentionTest, ScalesMultiplyTheirElements) {
  const std::vector<float> q = {1, -2};
  const std::vector<float> k = {0.5, 1, -1, 0.25};
  const std::vector<float> v = {3, 5, -2, 1};
  const ElementScales scales{.q = 0.75f, .k = 1.5f, .v = 3};
  HeadProblem problem = problem_of(q, k, v, 0.5f);
  problem.scales = scales;
  double out[2];
  double lse = 0;
  HeadMagnitudes magnitudes;
  dense_attention(problem, out, &lse, &magnitudes);
  // q.k of the values: -1.6875 and -1.6875; the sums of their absolute products 2.8125 and 1.6875.
  EXPECT_DOUBLE_EQ(lse, -0.84375 + std::log(2.0));
  EXPECT_DOUBLE_EQ(out[0], 1.5);
  EXPECT_DOUBLE_EQ(out[1], 9);
  EXPECT_DOUBLE_EQ(magnitudes.max_abs_score, 1.40625);
  EXPECT_DOUBLE_EQ(magnitudes.max_abs_value, 9);
  float naive[2];
  naive_attention(DataType::kFloat16, DataType::kFloat32, problem, naive);
  EXPECT_EQ(naive[0], 1.5f);
  EXPECT_EQ(naive[1], 9.0f);
}

TEST(NaiveAttentionTest, RoundsTheQueryToTheComputeTypeAndTheResultToItsOwn) {
  // Beside a key of zeros, 1 + 2^-8 - 2^-20 rounds to 1 in bf16 and to 1 + 2^-8 in f16.
  const std::vector<float> q = {1 + 0x1p-8f - 0x1p-20f};
  const std::vector<float> k = {1, 0};
  const std::vector<float> v = {1, 0};
  const HeadProblem problem = problem_of(q, k, v);
  const auto weight = [](DataType type, float score) {
    return round_to_type(type, 1 / (1 + std::exp(-score)));
  };
  float out = 0;
  naive_attention(DataType::kBFloat16, DataType::kFloat32, problem, &out);
  EXPECT_EQ(out, weight(DataType::kBFloat16, 1));
  naive_attention(DataType::kFloat16, DataType::kFloat32, problem, &out);
  EXPECT_EQ(out, weight(DataType::kFloat16, 1 + 0x1p-8f));
  EXPECT_NE(out, weight(DataType::kFloat16, 1));
  naive_attention(DataType::kFloat16, DataType::kBFloat16, problem, &out);
  EXPECT_EQ(out, round_to_type(DataType::kBFloat16, weight(DataType::kFloat16, 1 + 0x1p-8f)));
}

TEST(NaiveAttentionTest, RoundsWeightsAndResultToTheType) {
  // Equal scores of three tokens: each weight is 1/3 rounded to bf16, 0x3eab = 0.333984375.
  const std::vector<float> q = {1};
  const std::vector<float> k = {0, 0, 0};
  const std::vector<float> v = {1, 1, 1.0078125};
  float out = 0;
  naive_attention(DataType::kBFloat16, DataType::kBFloat16, problem_of(q, k, v), &out);
  // 3.0078125 * 0.333984375 = 1.00456..., nearest bf16 1.0078125 (steps of 2^-7 above 1).
  EXPECT_EQ(out, 1.0078125f);
  naive_attention(DataType::kFloat16, DataType::kFloat16, problem_of(q, k, v), &out);
  // f16: 1/3 -> 0.333251953125; 3.0078125 * that = 1.002359..., nearest step of 2^-10: 1.001953125.
  EXPECT_EQ(out, 1.001953125f);
}

TEST(NaiveAttentionTest, ErrorIsOfTheSizeOfTheTypesRounding) {
  BatchOptions options;
  options.spec = {.head_size = 64, .block_size = 16, .group_size = 1};
  options.seq_lens = {300};
  for (DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    options.spec.q_dtype = options.spec.kv_dtype = options.spec.out_dtype = type;
    const Result<AttentionBatch> batch = make_attention_batch(options);
    ASSERT_TRUE(batch.is_ok());
    std::vector<float> q(64);
    for (int i = 0; i < 64; ++i) q[i] = batch->q.at(batch->q_index(0, 0) + i);
    const HeadProblem problem{.q = q.data(),
                              .k = batch->dense_k[0].data(),
                              .v = batch->dense_v[0].data(),
                              .num_tokens = 300,
                              .head_size = 64,
                              .head_size_v = 64,
                              .rules = {.scale = batch->scale}};
    std::vector<double> want(64);
    std::vector<float> got(64);
    double lse = 0;
    HeadMagnitudes magnitudes;
    dense_attention(problem, want.data(), &lse, &magnitudes);
    naive_attention(type, type, problem, got.data());
    double error = 0;
    for (int i = 0; i < 64; ++i) error = std::max(error, std::abs(want[i] - got[i]));
    EXPECT_LE(error, 2 * unit_roundoff(type) * magnitudes.max_abs_value);
    EXPECT_GE(error, 0.01 * unit_roundoff(type) * magnitudes.max_abs_value);
  }
}

struct PagedCase {
  const char* name;
  KernelSpec spec;
  CacheLayout layout;
  bool share_prefix;
  LogitRegime logits;
};

class PagedAttentionTest : public testing::TestWithParam<PagedCase> {};

TEST_P(PagedAttentionTest, EqualsDenseForAnyScatteringOfBlocks) {
  const PagedCase& param = GetParam();
  const int block_size = param.spec.block_size;
  BatchOptions options;
  options.spec = param.spec;
  options.num_kv_heads = 2;
  options.seq_lens = {0, 1, block_size - 1, block_size, block_size + 1, 3 * block_size + 2, 130};
  options.layout = param.layout;
  options.share_prefix = param.share_prefix;
  options.logits = param.logits;
  for (uint64_t seed : {1u, 2u, 3u}) {
    options.seed = seed;
    const Result<AttentionBatch> made = make_attention_batch(options);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    expect_paged_equals_dense(*made);
  }
}

KernelSpec spec_of(DataType type, int head_size, int block_size, int group_size) {
  return {.q_dtype = type,
          .kv_dtype = type,
          .out_dtype = type,
          .head_size = head_size,
          .block_size = block_size,
          .group_size = group_size};
}

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;

INSTANTIATE_TEST_SUITE_P(
    Layouts, PagedAttentionTest,
    testing::Values(
        PagedCase{"nhd", spec_of(kBF16, 16, 16, 1), CacheLayout::kNhd, false, LogitRegime::kNormal},
        PagedCase{"hnd", spec_of(kF16, 24, 5, 3), CacheLayout::kHnd, false, LogitRegime::kNormal},
        PagedCase{"interleaved", spec_of(kBF16, 40, 1, 2), CacheLayout::kInterleaved, false,
                  LogitRegime::kNormal},
        PagedCase{"layered", spec_of(kF16, 32, 8, 4), CacheLayout::kLayered, false,
                  LogitRegime::kNormal},
        PagedCase{"padded", spec_of(kBF16, 72, 24, 2), CacheLayout::kPadded, false,
                  LogitRegime::kNormal},
        PagedCase{"shared", spec_of(kF16, 16, 16, 2), CacheLayout::kHnd, true,
                  LogitRegime::kNormal},
        PagedCase{"shared_padded", spec_of(kBF16, 16, 7, 1), CacheLayout::kPadded, true,
                  LogitRegime::kNormal},
        PagedCase{"high", spec_of(kF16, 16, 16, 2), CacheLayout::kNhd, false, LogitRegime::kHigh},
        PagedCase{"low", spec_of(kBF16, 256, 16, 2), CacheLayout::kNhd, false, LogitRegime::kLow},
        PagedCase{"mixed", spec_of(kBF16, 80, 16, 2), CacheLayout::kNhd, true,
                  LogitRegime::kMixed}),
    [](const testing::TestParamInfo<PagedCase>& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace pagejit
