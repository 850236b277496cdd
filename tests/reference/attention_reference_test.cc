// The references against values worked out by hand, and against each other on random paged batches.
#include "tools/reference/attention_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/reference/attention_batch.h"
#include "tools/reference/half.h"

namespace pagejit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(DenseAttentionTest, OneTokenGivesItsValueAndItsScore) {
  const std::vector<float> q = {2, 3};
  const std::vector<float> k = {0.5, -1};
  const std::vector<float> v = {7, -9};
  double out[2];
  double lse = 0;
  dense_attention({q.data(), k.data(), v.data(), 1, 2, 0.25f}, out, &lse);
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
  dense_attention({q.data(), k.data(), v.data(), 2, 2, 1.0f}, out, &lse, &magnitudes);
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
  dense_attention({q.data(), nullptr, nullptr, 0, 2, 1.0f}, out, &lse);
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
    dense_attention({q.data(), k.data(), v.data(), 2, 1, 1.0f}, &out, &lse);
    EXPECT_DOUBLE_EQ(out, 2);
    EXPECT_DOUBLE_EQ(lse, sign * 1e6 + std::log(2.0));
  }
}

TEST(NaiveAttentionTest, RoundsWeightsAndResultToTheType) {
  // Equal scores of three tokens: each weight is 1/3 rounded to bf16, 0x3eab = 0.333984375.
  const std::vector<float> q = {1};
  const std::vector<float> k = {0, 0, 0};
  const std::vector<float> v = {1, 1, 1.0078125};
  float out = 0;
  naive_attention(DataType::kBFloat16, {q.data(), k.data(), v.data(), 3, 1, 1.0f}, &out);
  // 3.0078125 * 0.333984375 = 1.00456..., nearest bf16 1.0078125 (steps of 2^-7 above 1).
  EXPECT_EQ(out, 1.0078125f);
  naive_attention(DataType::kFloat16, {q.data(), k.data(), v.data(), 3, 1, 1.0f}, &out);
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
    for (int i = 0; i < 64; ++i) q[i] = decode_half(type, batch->q[batch->q_index(0, 0) + i]);
    const HeadProblem problem{
        q.data(), batch->dense_k[0].data(), batch->dense_v[0].data(), 300, 64, batch->scale};
    std::vector<double> want(64);
    std::vector<float> got(64);
    double lse = 0;
    HeadMagnitudes magnitudes;
    dense_attention(problem, want.data(), &lse, &magnitudes);
    naive_attention(type, problem, got.data());
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

// Also proves that the batch builder puts every token where its block table says, and nothing of
// use elsewhere.
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
    const AttentionBatch& batch = *made;
    const int head_size = param.spec.head_size;
    const size_t num_rows = static_cast<size_t>(batch.num_seqs) * batch.num_heads;
    std::vector<double> out(num_rows * head_size);
    std::vector<double> lse(num_rows);
    paged_attention(param.spec, batch.host_args(), out.data(), lse.data());

    std::vector<float> q(head_size);
    std::vector<double> want(head_size);
    for (int seq = 0; seq < batch.num_seqs; ++seq) {
      const int64_t length = batch.seq_lens[seq];
      for (int head = 0; head < batch.num_heads; ++head) {
        const uint16_t* q_row = batch.q.data() + batch.q_index(seq, head);
        for (int i = 0; i < head_size; ++i) q[i] = decode_half(param.spec.q_dtype, q_row[i]);
        const int64_t from = head / param.spec.group_size * length * head_size;
        double want_lse = 0;
        dense_attention({q.data(), batch.dense_k[seq].data() + from,
                         batch.dense_v[seq].data() + from, length, head_size, batch.scale},
                        want.data(), &want_lse);
        const size_t row = static_cast<size_t>(seq) * batch.num_heads + head;
        if (length == 0) {
          ASSERT_EQ(lse[row], -kInfinity);
        } else {
          // Two roundings of float64 at the size of the score.
          ASSERT_NEAR(lse[row], want_lse, 1e-12 * std::max(1.0, std::abs(want_lse)));
        }
        // A score of 5e4 has a step of 7e-12 in float64, so its exponential is no better than that.
        const double tolerance = param.logits == LogitRegime::kNormal ? 1e-12 : 1e-10;
        for (int i = 0; i < head_size; ++i) {
          ASSERT_NEAR(out[row * head_size + i], want[i], tolerance)
              << "sequence " << seq << " head " << head << " element " << i;
        }
      }
    }
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
