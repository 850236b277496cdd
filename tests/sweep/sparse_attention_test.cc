// Latent attention (MLA) from end to end: an indexer's keys, logits and greatest values choose the
// tokens that attention sees, and the result is that of dense attention masked to them; and decode
// over the latent cache is expanded multi-head attention, for any projections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "pagejit/indexer.h"
#include "tests/sweep/error_summary.h"
#include "tests/sweep/family_test.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;

KernelSpec make_latent(int kv_lora_rank, int rope_head_dim, int num_heads) {
  KernelSpec spec = make_spec(kBF16, kv_lora_rank + rope_head_dim, 64, num_heads);
  spec.head_size_v = kv_lora_rank;
  spec.latent = true;
  return spec;
}

class SparseAttentionTest : public FamilyTest {
 protected:
  static constexpr int kIndexHeads = 32;
  static constexpr int kIndexHeadSize = 128;

  static std::vector<float> draw(SplitMix64& rng, size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = rng.uniform();
    return values;
  }

  // The indexer's choice of k positions for each sequence's one query token, by three launches over
  // random index keys and queries; [num_seqs, k] on the device.
  DeviceBuffer choose_tokens(const AttentionBatch& batch, const AttentionArgs& attention, int k) {
    const int block_size = batch.options.spec.block_size;
    SplitMix64 rng(7);
    std::vector<int64_t> slots;
    for (int seq = 0; seq < batch.num_seqs; ++seq) {
      const int32_t* row = batch.block_table.data() + seq * batch.block_table_stride;
      for (int token = 0; token < batch.seq_lens[static_cast<size_t>(seq)]; ++token) {
        slots.push_back(int64_t{row[token / block_size]} * block_size + token % block_size);
      }
    }
    const DeviceBuffer keys = upload(draw(rng, slots.size() * kIndexHeadSize));
    const DeviceBuffer device_slots = upload(slots);
    const int64_t page_bytes = index_page_bytes(block_size, kIndexHeadSize, kIndexHeadSize);
    const DeviceBuffer pages =
        upload(std::vector<uint8_t>(static_cast<size_t>(page_bytes * batch.num_blocks), 0x7f));
    IndexKeyWriteArgs write;
    write.k = keys.data();
    write.k_stride_token = kIndexHeadSize;
    write.cache = pages.data();
    write.block_stride_bytes = page_bytes;
    write.slot_mapping = device_slots.data<int64_t>();
    write.num_tokens = static_cast<int32_t>(slots.size());
    EXPECT_TRUE(run(prepare_family(IndexKeyWriteSpec{.dtype = DataType::kFloat32}), write));

    const auto num_rows = static_cast<size_t>(batch.num_seqs);
    std::vector<uint8_t> queries(num_rows * kIndexHeads * kIndexHeadSize);
    for (uint8_t& code : queries) {
      code = static_cast<uint8_t>(encode_float(kE4m3, rng.uniform()));
    }
    const DeviceBuffer q = upload(queries);
    const DeviceBuffer weights = upload(draw(rng, num_rows * kIndexHeads));
    const int longest = *std::max_element(batch.seq_lens.begin(), batch.seq_lens.end());
    const int64_t stride = index_logits_stride(longest);
    logits_ = upload(std::vector<float>(num_rows * static_cast<size_t>(stride)));
    IndexLogitsArgs logits;
    logits.q = q.data();
    logits.q_stride_head = kIndexHeadSize;
    logits.q_stride_row = kIndexHeads * kIndexHeadSize;
    logits.weights = weights.data<float>();
    logits.weights_stride = kIndexHeads;
    logits.k = pages.data();
    logits.k_stride = page_bytes;
    logits.block_table = attention.block_table;
    logits.block_table_stride = attention.block_table_stride;
    logits.ranges.seq_lens = attention.seq_lens;
    logits.num_rows = batch.num_seqs;
    logits.num_columns = longest;
    logits.logits = logits_.data<float>();
    logits.logits_stride = stride;
    EXPECT_TRUE(
        run(prepare_family(IndexLogitsSpec{
                .num_heads = kIndexHeads, .head_size = kIndexHeadSize, .block_size = block_size}),
            logits));

    DeviceBuffer indices = upload(std::vector<int32_t>(num_rows * static_cast<size_t>(k), -7));
    TopKArgs top;
    top.logits = logits.logits;
    top.logits_stride = stride;
    top.ranges = logits.ranges;
    top.num_rows = batch.num_seqs;
    top.num_columns = longest;
    top.k = k;
    top.indices = indices.data<int32_t>();
    top.indices_stride = k;
    EXPECT_TRUE(run(prepare_family(TopKSpec{}), top));
    return indices;
  }

  DeviceBuffer logits_;  // of the last choice
};

TEST_F(SparseAttentionTest, IsDenseAttentionMaskedToTheTokensThatTheIndexerChose) {
  constexpr int kTopK = 64;
  BatchOptions options;
  options.spec = make_latent(512, 64, 16);
  options.seq_lens = {300, 64, 20, 1, 130};
  AttentionBatch batch = make_batch(options);
  Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  AttentionArgs args = device_batch->args();
  const DeviceBuffer indices = choose_tokens(batch, args, kTopK);

  // The mask, and that no token outside of it has a greater logit.
  const auto chosen = download_all<int32_t>(indices);
  const auto logits = download_all<float>(logits_);
  const auto stride = static_cast<size_t>(index_logits_stride(300));
  for (size_t seq = 0; seq < batch.seq_lens.size(); ++seq) {
    const auto length = static_cast<size_t>(batch.seq_lens[seq]);
    std::vector<uint8_t> listed(length, 0);
    for (size_t i = 0; i < kTopK; ++i) {
      const int32_t token = chosen[seq * kTopK + i];
      ASSERT_LT(token, batch.seq_lens[seq]);
      if (token >= 0) listed[static_cast<size_t>(token)] = 1;
    }
    ASSERT_EQ(std::count(listed.begin(), listed.end(), 1),
              static_cast<std::ptrdiff_t>(std::min<size_t>(length, kTopK)));
    float least_chosen = INFINITY;
    float greatest_left = -INFINITY;
    for (size_t token = 0; token < length; ++token) {
      const float logit = logits[seq * stride + token];
      if (listed[token] != 0) least_chosen = std::min(least_chosen, logit);
      if (listed[token] == 0) greatest_left = std::max(greatest_left, logit);
    }
    EXPECT_GE(least_chosen, greatest_left);
    batch.is_listed.push_back(listed);
  }

  KernelSpec sparse = options.spec;
  sparse.kv_table = KvTable::kPositions;
  const Kernel kernel = prepare(sparse);
  ASSERT_TRUE(kernel);
  args.token_lists = indices.data<int32_t>();
  args.token_list_stride = args.max_list_len = kTopK;
  args.seq_lens = nullptr;  // each list is full, but for padding
  args.num_splits = 1;
  ASSERT_TRUE(run(kernel, args));
  const Result<AttentionResults> results = device_batch->download();
  ASSERT_TRUE(results.is_ok());
  const CheckReport report =
      compare_results(batch, compute_reference(batch), *results, /*with_lse=*/true, 1);
  EXPECT_TRUE(report.passed) << report.sentence;
  batch.is_listed[0].assign(300, 1);
  EXPECT_FALSE(compare_results(batch, compute_reference(batch), *results, true, 1).passed)
      << "the mask makes a difference";
}

// Head h has K_h = W_uk[h] c and V_h = W_uv[h] c of a latent vector c, and one rotated part for
// all. q brought into the latent space, W_uk[h]^T q, has the same scores, and W_uv[h] times the
// result is the head's.
TEST_F(SparseAttentionTest, LatentDecodeIsExpandedMultiHeadAttention) {
  constexpr int kRank = 128;
  constexpr int kRope = 32;
  constexpr int kNope = 48;
  constexpr int kValue = 40;
  constexpr int kHeads = 6;
  constexpr int kTokens = 150;
  BatchOptions options;
  options.spec = make_latent(kRank, kRope, kHeads);
  options.spec.q_dtype = options.spec.out_dtype = DataType::kFloat32;
  options.spec.kv_dtype = DataType::kFloat16;
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
  ASSERT_TRUE(run(kernel, args));
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
