// Decode over the latent cache (MLA) is expanded multi-head attention, for any projections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/sweep/test_device.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

class LatentExpandedTest : public DeviceTest {
 protected:
  static std::vector<float> draw(SplitMix64& rng, size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = rng.uniform();
    return values;
  }
};

// Head h has K_h = W_uk[h] c and V_h = W_uv[h] c of a latent vector c, and one rotated part for
// all. q brought into the latent space, W_uk[h]^T q, has the same scores, and W_uv[h] times the
// result is the head's.
TEST_F(LatentExpandedTest, LatentDecodeIsExpandedMultiHeadAttention) {
  constexpr int kRank = 128;
  constexpr int kRope = 32;
  constexpr int kNope = 48;
  constexpr int kValue = 40;
  constexpr int kHeads = 6;
  constexpr int kTokens = 150;
  BatchOptions options;
  options.spec = make_spec(DataType::kFloat16, kRank + kRope, 64, kHeads);
  options.spec.head_size_v = kRank;
  options.spec.latent = true;
  options.spec.q_dtype = options.spec.out_dtype = DataType::kFloat32;
  options.seq_lens = {kTokens};
  options.scale = 1 / std::sqrt(static_cast<float>(kNope + kRope));
  AttentionBatch batch = make_batch(options);
  SplitMix64 rng(3);
  const std::vector<float> w_uk = draw(rng, size_t{kHeads} * kNope * kRank);
  const std::vector<float> w_uv = draw(rng, size_t{kHeads} * kValue * kRank);
  const std::vector<float> q_nope = draw(rng, size_t{kHeads} * kNope);
  const std::vector<float> q_rope = draw(rng, size_t{kHeads} * kRope);
  const auto up = [](const std::vector<float>& w, int rows, int head, int row, int i) {
    return double{w[static_cast<size_t>((head * rows + row) * kRank + i)]};
  };
  for (int head = 0; head < kHeads; ++head) {
    for (int i = 0; i < kRank; ++i) {
      double absorbed = 0;
      for (int row = 0; row < kNope; ++row) {
        absorbed += up(w_uk, kNope, head, row, i) * q_nope[static_cast<size_t>(head * kNope + row)];
      }
      batch.q.set(batch.q_index(0, head) + i, static_cast<float>(absorbed));
    }
    for (int i = 0; i < kRope; ++i) {
      batch.q.set(batch.q_index(0, head) + kRank + i,
                  q_rope[static_cast<size_t>(head * kRope + i)]);
    }
  }
  Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
  ASSERT_TRUE(device_batch.is_ok());
  AttentionArgs args = device_batch->args();
  args.num_splits = 1;
  const Kernel kernel = prepare(options.spec);
  Status status = kernel.launch(args, nullptr);
  if (status) status = session().synchronize();
  ASSERT_TRUE(status.is_ok()) << status.to_string() << report();
  const Result<AttentionResults> results = device_batch->download();
  ASSERT_TRUE(results.is_ok());

  const std::vector<float>& rows = batch.dense_k[0];  // [tokens, kRank + kRope]
  const auto latent = [&](int token, int i) {
    return double{rows[static_cast<size_t>(token * (kRank + kRope) + i)]};
  };
  double greatest = 0;
  double worst = 0;
  for (int head = 0; head < kHeads; ++head) {
    std::vector<double> scores;
    double max = -INFINITY;
    for (int token = 0; token < kTokens; ++token) {
      double score = 0;
      for (int row = 0; row < kNope; ++row) {
        double key = 0;
        for (int i = 0; i < kRank; ++i) key += up(w_uk, kNope, head, row, i) * latent(token, i);
        score += key * q_nope[static_cast<size_t>(head * kNope + row)];
      }
      for (int i = 0; i < kRope; ++i) {
        score += latent(token, kRank + i) * q_rope[static_cast<size_t>(head * kRope + i)];
      }
      scores.push_back(score * options.scale);
      max = std::max(max, scores.back());
    }
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - max);
    for (int row = 0; row < kValue; ++row) {
      double want = 0;
      for (int token = 0; token < kTokens; ++token) {
        double value = 0;
        for (int i = 0; i < kRank; ++i) value += up(w_uv, kValue, head, row, i) * latent(token, i);
        want += scores[static_cast<size_t>(token)] / sum * value;
      }
      double got = 0;
      for (int i = 0; i < kRank; ++i) {
        got += up(w_uv, kValue, head, row, i) * results->out.at(batch.out_index(0, head) + i);
      }
      greatest = std::max(greatest, std::abs(want));
      worst = std::max(worst, std::abs(got - want));
    }
  }
  EXPECT_GT(greatest, 0.1);
  // q, P: one rounding to f16 each, 2^-11, of terms that partly cancel.
  EXPECT_LT(worst, 4 * 0x1p-11 * greatest) << worst << " of " << greatest;
}

}  // namespace
}  // namespace pagejit
