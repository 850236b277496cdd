// The rule by which a kernel passes: what must pass, and that each kind of mistake fails.
#include "tools/check/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/reference/element_types.h"
#include "tools/check/check.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

class CompareTest : public testing::TestWithParam<ElementTypes> {
 protected:
  void SetUp() override {
    BatchOptions options;
    options.spec = {.head_size = 64, .block_size = 16, .group_size = 8};
    GetParam().put_into(options.spec);
    options.seq_lens = {0, 1, 17, 2049};
    Result<AttentionBatch> made = make_attention_batch(options);
    ASSERT_TRUE(made.is_ok());
    batch_ = std::move(made).value();
    reference_ = compute_reference(batch_);
    results_ = {batch_.out, batch_.lse};
    for (int seq = 0; seq < batch_.num_seqs; ++seq) {
      for (int head = 0; head < batch_.num_heads; ++head) {
        for (int i = 0; i < 64; ++i) store(seq, head, i, reference_.naive[index(seq, head, i)]);
        lse(seq, head) = static_cast<float>(reference_.lse[row(seq, head)]);
      }
    }
  }

  size_t row(int seq, int head) const { return static_cast<size_t>(seq) * batch_.num_heads + head; }
  size_t index(int seq, int head, int i) const { return row(seq, head) * 64 + i; }
  void store(int seq, int head, int i, double value) {
    results_.out.set(batch_.out_index(seq, head) + i, static_cast<float>(value));
  }
  float& lse(int seq, int head) { return results_.lse[AttentionBatch::kLseGuard + row(seq, head)]; }
  // The coarser one of P and the result.
  double roundoff() const {
    return std::max(unit_roundoff(compute_type(batch_.options.spec)),
                    unit_roundoff(GetParam().out));
  }
  // The rounding of an f32 q hides small errors of lse.
  bool lse_is_exact() const { return GetParam().q != DataType::kFloat32; }
  CheckReport compare() const { return compare_results(batch_, reference_, results_, true, 1); }

  AttentionBatch batch_;
  ReferenceResults reference_;
  AttentionResults results_;
};

TEST_P(CompareTest, TheNaiveResultPassesAtHalfOfTheLimit) {
  const CheckReport report = compare();
  EXPECT_TRUE(report.passed) << report.sentence;
  EXPECT_EQ(report.max_error, report.naive_max_error);
  EXPECT_EQ(report.mean_error, report.naive_mean_error);
  EXPECT_DOUBLE_EQ(report.worst_ratio, 0.5);
  EXPECT_EQ(report.tokens, 0 + 1 + 17 + 2049);
  EXPECT_EQ(report.elements, 4 * 8 * 64);
  EXPECT_LT(report.lse_max_error, report.lse_tolerance);
  EXPECT_NE(report.sentence.find("passed"), std::string::npos);
}

TEST_P(CompareTest, OneElementOffByThreeNaiveErrorsFailsWithItsPosition) {
  const double wrong = reference_.out[index(2, 3, 5)] + 20 * roundoff();
  store(2, 3, 5, wrong);
  const CheckReport report = compare();
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.worst.seq, 2);
  EXPECT_EQ(report.worst.head, 3);
  EXPECT_EQ(report.worst.element, 5);
  EXPECT_NEAR(report.worst.got, wrong, 2 * roundoff());
  EXPECT_EQ(report.worst.want, reference_.out[index(2, 3, 5)]);
  EXPECT_NE(report.sentence.find("sequence 2, query token 2, head 3, element 5"), std::string::npos)
      << report.sentence;
}

// The error is far below that of the short sequences' rounding.
TEST_P(CompareTest, ALostTokenOfALongSequenceFails) {
  for (int lost : {0, 1024, 2048}) {
    SetUp();
    AttentionBatch without = batch_;
    for (std::vector<float>* dense : {&without.dense_k[3], &without.dense_v[3]}) {
      dense->erase(dense->begin() + lost * 64, dense->begin() + (lost + 1) * 64);
    }
    without.seq_lens[3] = 2048;
    const ReferenceResults wrong = compute_reference(without);
    double error = 0;
    for (int head = 0; head < 8; ++head) {
      for (int i = 0; i < 64; ++i) {
        store(3, head, i, wrong.out[index(3, head, i)]);
        error = std::max(
            error, std::abs(wrong.out[index(3, head, i)] - reference_.out[index(3, head, i)]));
      }
    }
    const CheckReport out_only = compare();
    // bf16 rounds P and the result so coarsely that out alone cannot always tell; lse can.
    const bool out_tells = roundoff() < unit_roundoff(DataType::kBFloat16);
    if (out_tells) {
      EXPECT_FALSE(out_only.passed) << lost << " " << error;
    }
    for (int head = 0; head < 8; ++head) lse(3, head) = static_cast<float>(wrong.lse[row(3, head)]);
    if (out_tells || lse_is_exact()) {
      EXPECT_FALSE(compare().passed) << lost;
    }
  }
}

TEST_P(CompareTest, NanAndUnwrittenElementsFail) {
  results_.out.set_code(batch_.out_index(3, 7) + 63,
                        ElementBuffer::sentinel_code(results_.out.type()));
  CheckReport report = compare();
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.worst.seq, 3);
  EXPECT_EQ(report.worst.head, 7);
  EXPECT_EQ(report.worst.element, 63);
  EXPECT_TRUE(std::isnan(report.max_error));
  EXPECT_NE(report.sentence.find("NaN"), std::string::npos);
  SetUp();
  results_.out.set_code(batch_.out_index(0, 0), ElementBuffer::sentinel_code(results_.out.type()));
  EXPECT_EQ(compare().worst.seq, 0);
  EXPECT_FALSE(compare().passed);
}

TEST_P(CompareTest, EmptySequencesMustBeExact) {
  store(0, 1, 2, 1e-6);
  EXPECT_FALSE(compare().passed);
  SetUp();
  lse(0, 3) = -1e30f;
  EXPECT_FALSE(compare().passed);
}

TEST_P(CompareTest, LseIsCheckedWhereWantedOnly) {
  for (float wrong : {lse_is_exact() ? 1e-3f : 0.25f, std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity()}) {
    SetUp();
    lse(2, 6) += wrong;
    const CheckReport report = compare();
    EXPECT_FALSE(report.passed);
    EXPECT_NE(report.sentence.find("lse at sequence 2, query token 2, head 6"), std::string::npos)
        << report.sentence;
  }
  SetUp();
  results_.lse = batch_.lse;
  EXPECT_TRUE(compare_results(batch_, reference_, results_, false, 1).passed);
}

TEST_P(CompareTest, AWriteOutsideOfTheResultFails) {
  results_.out.set(batch_.out_index(1, 0) - 1, 0);
  const CheckReport report = compare();
  EXPECT_FALSE(report.passed);
  EXPECT_NE(report.sentence.find("outside"), std::string::npos) << report.sentence;
}

TEST_P(CompareTest, LseToleranceIsFarBelowTheWeightOfOneToken) {
  for (int head = 0; head < 8; ++head) {
    EXPECT_EQ(reference_.lse_tolerance[row(0, head)], 0);
    EXPECT_GT(reference_.lse_tolerance[row(3, head)], 0x1p-24);
    if (lse_is_exact()) {
      EXPECT_LT(reference_.lse_tolerance[row(3, head)], 0.25 / 2049);
    } else {
      // Of the score: scale * sum |q_i k_i| is near 0.64 * sqrt(64), and at most twice that.
      EXPECT_LT(reference_.lse_tolerance[row(3, head)],
                12 * unit_roundoff(compute_type(batch_.options.spec)));
    }
  }
}

// As one that is not applied or is that of another head.
TEST_P(CompareTest, AWrongScaleFails) {
  if (!GetParam().has_8_bit_kv()) return;
  for (std::vector<float> AttentionBatch::*scale :
       {&AttentionBatch::k_scale, &AttentionBatch::v_scale, &AttentionBatch::q_scale}) {
    SetUp();
    AttentionBatch other = batch_;
    if ((other.*scale).empty()) continue;
    (other.*scale)[0] *= 1.05f;
    const ReferenceResults wrong = compute_reference(other);
    for (int head = 0; head < 8; ++head) {
      for (int i = 0; i < 64; ++i) store(3, head, i, wrong.out[index(3, head, i)]);
    }
    EXPECT_FALSE(compare().passed);
  }
}

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;
constexpr DataType kE5m2 = DataType::kFloat8E5m2;

INSTANTIATE_TEST_SUITE_P(
    Types, CompareTest,
    testing::Values(ElementTypes{kF16, kF16, kF16}, ElementTypes{kBF16, kBF16, kBF16},
                    ElementTypes{kF16, kF16, kF32}, ElementTypes{kBF16, kBF16, kF32},
                    ElementTypes{kF32, kF16, kF16}, ElementTypes{kF32, kBF16, kBF16},
                    ElementTypes{kF32, kF16, kF32}, ElementTypes{kF16, kF16, kBF16},
                    ElementTypes{kF16, kE4m3, kF16}, ElementTypes{kBF16, kE4m3, kBF16},
                    ElementTypes{kE4m3, kE4m3, kBF16}, ElementTypes{kE4m3, kE5m2, kF32},
                    ElementTypes{kBF16, kE5m2, kF16}, ElementTypes{kF32, kE5m2, kF16}),
    element_types_name);

}  // namespace
}  // namespace pagejit
