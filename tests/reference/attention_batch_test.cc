// The batch builder: poison where nothing may be read, sentinels where nothing may be written,
// scores in their regime.
#include "tools/reference/attention_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "tools/reference/attention_reference.h"

namespace pagejit {
namespace {

BatchOptions small_options() {
  BatchOptions options;
  options.spec = {.head_size = 16, .block_size = 4, .group_size = 3};
  options.num_kv_heads = 2;
  options.seq_lens = {6, 0, 9, 4};
  return options;
}

AttentionBatch make(const BatchOptions& options) {
  Result<AttentionBatch> batch = make_attention_batch(options);
  EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
  return std::move(batch).value();
}

constexpr CacheLayout kLayouts[] = {CacheLayout::kNhd, CacheLayout::kHnd, CacheLayout::kInterleaved,
                                    CacheLayout::kLayered, CacheLayout::kPadded};

TEST(AttentionBatchTest, EverySlotWithoutATokenIsNan) {
  for (CacheLayout layout : kLayouts) {
    BatchOptions options = small_options();
    options.layout = layout;
    const AttentionBatch batch = make(options);
    int64_t num_values = 0;
    int64_t num_nan = 0;
    for (const KvAllocation& allocation : batch.allocations) {
      for (int64_t i = 0; i < allocation.data.size(); ++i) {
        ++(std::isnan(allocation.data.at(i)) ? num_nan : num_values);
      }
    }
    EXPECT_EQ(num_values, (6 + 9 + 4) * 2 * 16 * 2) << cache_layout_name(layout);
    EXPECT_EQ(num_values * data_type_bytes(options.spec.kv_dtype), batch.valid_kv_bytes());
    EXPECT_GT(num_nan, 0) << cache_layout_name(layout);
  }
}

TEST(AttentionBatchTest, LayoutsHaveTheStridesOfTheirNames) {
  BatchOptions options = small_options();
  options.layout = CacheLayout::kNhd;
  EXPECT_EQ(make(options).k_place.strides.token, 2 * 16);
  EXPECT_EQ(make(options).k_place.strides.block, 4 * 2 * 16);
  options.layout = CacheLayout::kHnd;
  EXPECT_EQ(make(options).k_place.strides.head, 4 * 16);
  options.layout = CacheLayout::kInterleaved;
  EXPECT_EQ(make(options).allocations.size(), 1u);
  EXPECT_EQ(make(options).v_place.offset, 4 * 2 * 16);
  options.layout = CacheLayout::kLayered;
  EXPECT_EQ(make(options).k_place.strides.block, 3 * 2 * 4 * 2 * 16);
  options.layout = CacheLayout::kPadded;
  const AttentionBatch padded = make(options);
  for (const KvPlace* place : {&padded.k_place, &padded.v_place}) {
    EXPECT_EQ(place->strides.head % 8, 0);
    EXPECT_EQ(place->strides.token % 8, 0);
    EXPECT_EQ(place->strides.block % 8, 0);
    EXPECT_EQ(place->offset % 8, 0);
  }
  EXPECT_NE(padded.k_place.strides.block, padded.v_place.strides.block);
  EXPECT_NE(padded.k_place.strides.token, padded.v_place.strides.token);
  EXPECT_NE(padded.k_place.strides.head, padded.v_place.strides.head);
}

TEST(AttentionBatchTest, UsedBlocksAreDistinctAndUnusedEntriesAbsurd) {
  const AttentionBatch batch = make(small_options());
  std::set<int32_t> used;
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int num_blocks = (batch.seq_lens[seq] + 3) / 4;
    for (int64_t i = 0; i < batch.block_table_stride; ++i) {
      const int32_t id = batch.block_table[seq * batch.block_table_stride + i];
      if (i < num_blocks) {
        EXPECT_GE(id, 0);
        EXPECT_LT(id, batch.num_blocks);
        EXPECT_TRUE(used.insert(id).second) << "block " << id << " used twice";
      } else {
        EXPECT_TRUE(id < 0 || id >= batch.num_blocks) << id;
      }
    }
  }
  EXPECT_EQ(used.size(), 2u + 3u + 1u);
  EXPECT_LT(static_cast<int64_t>(used.size()), batch.num_blocks);
}

TEST(AttentionBatchTest, SharedPrefixSharesWholeBlocksOnly) {
  BatchOptions options = small_options();
  options.share_prefix = true;
  const AttentionBatch batch = make(options);
  const auto entry = [&](int seq, int i) {
    return batch.block_table[seq * batch.block_table_stride + i];
  };
  EXPECT_EQ(entry(2, 0), entry(0, 0));  // 6 and 9 tokens: one whole block of both
  EXPECT_NE(entry(2, 1), entry(0, 1));
  EXPECT_EQ(entry(3, 0), entry(0, 0));  // 4 tokens: all of it
  EXPECT_EQ(batch.dense_k[3][0], batch.dense_k[0][0]);
}

TEST(AttentionBatchTest, TheSeedDecidesEverything) {
  BatchOptions options = small_options();
  const AttentionBatch first = make(options);
  const AttentionBatch again = make(options);
  EXPECT_EQ(first.q, again.q);
  EXPECT_EQ(first.block_table, again.block_table);
  EXPECT_EQ(first.allocations[0].data, again.allocations[0].data);
  options.seed = 2;
  const AttentionBatch other = make(options);
  EXPECT_NE(first.q, other.q);
  EXPECT_NE(first.block_table, other.block_table);
}

TEST(AttentionBatchTest, ScoresLieInTheirRegimeAndAreExactInFloat32) {
  for (DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    for (int head_size : {16, 72, 128, 256}) {
      for (LogitRegime regime : {LogitRegime::kHigh, LogitRegime::kLow, LogitRegime::kMixed}) {
        BatchOptions options;
        options.spec.q_dtype = options.spec.kv_dtype = options.spec.out_dtype = type;
        options.spec.head_size = head_size;
        options.seq_lens = {40};
        options.logits = regime;
        const AttentionBatch batch = make(options);
        const int64_t q = batch.q_index(0, 0);
        int num_high = 0;
        double least = std::numeric_limits<double>::infinity();
        double greatest = 0;
        for (int token = 0; token < 40; ++token) {
          const float* k = batch.dense_k[0].data() + token * head_size;
          double exact = 0;
          float forward = 0;
          float backward = 0;
          for (int i = 0; i < head_size; ++i) {
            exact += static_cast<double>(batch.q.at(q + i)) * k[i];
            forward += batch.q.at(q + i) * k[i];
            backward += batch.q.at(q + head_size - 1 - i) * k[head_size - 1 - i];
          }
          EXPECT_EQ(exact, static_cast<double>(forward));
          EXPECT_EQ(exact, static_cast<double>(backward));
          const double score = exact * batch.scale;
          EXPECT_GT(std::abs(score), 5e4);
          EXPECT_LT(std::abs(score), 6e4);
          if (score > 0) ++num_high;
          least = std::min(least, std::abs(score));
          greatest = std::max(greatest, std::abs(score));
        }
        EXPECT_GT(greatest - least, 1) << "scores must differ, or softmax is a mean";
        EXPECT_LT(greatest - least, 20) << "scores must be near, or softmax picks one token";
        if (regime == LogitRegime::kHigh) {
          EXPECT_EQ(num_high, 40);
        }
        if (regime == LogitRegime::kLow) {
          EXPECT_EQ(num_high, 0);
        }
        if (regime == LogitRegime::kMixed) {
          EXPECT_GT(num_high, 5);
          EXPECT_LT(num_high, 35);
        }
      }
    }
  }
}

TEST(AttentionBatchTest, NormalScoresHaveVarianceOne) {
  BatchOptions options;
  options.seq_lens = {2000};
  const AttentionBatch batch = make(options);
  double sum_of_squares = 0;
  for (int token = 0; token < 2000; ++token) {
    double dot = 0;
    for (int i = 0; i < 128; ++i) {
      dot += static_cast<double>(batch.q.at(batch.q_index(0, 0) + i)) *
             batch.dense_k[0][token * 128 + i];
    }
    sum_of_squares += dot * batch.scale * dot * batch.scale;
  }
  // The variance for one q is |q|^2 / head_size, itself 1 +- 0.125.
  EXPECT_NEAR(sum_of_squares / 2000, 1, 0.5);
}

TEST(AttentionBatchTest, AWriteOutsideOfTheResultIsFound) {
  for (bool padded_rows : {false, true}) {
    BatchOptions options = small_options();
    options.padded_rows = padded_rows;
    const AttentionBatch batch = make(options);
    ElementBuffer out = batch.out;
    std::vector<float> lse = batch.lse;
    for (int seq = 0; seq < batch.num_seqs; ++seq) {
      for (int head = 0; head < batch.num_heads; ++head) {
        for (int i = 0; i < 16; ++i) out.set(batch.out_index(seq, head) + i, 0);
        lse[AttentionBatch::kLseGuard + seq * batch.num_heads + head] = 0;
      }
    }
    EXPECT_TRUE(check_untouched(batch, out, lse, true).is_ok());
    EXPECT_FALSE(check_untouched(batch, out, lse, false).is_ok()) << "lse was not wanted";
    const int64_t last = batch.out_index(3, 5) + 16;
    for (int64_t index : {int64_t{0}, batch.out_index(0, 0) - 1, last, out.size() - 1}) {
      ElementBuffer bad = out;
      bad.set(index, 0);
      EXPECT_FALSE(check_untouched(batch, bad, lse, true).is_ok()) << index;
    }
    if (padded_rows) {
      ElementBuffer bad = out;
      bad.set(batch.out_index(0, 1) + 16, 0);
      EXPECT_FALSE(check_untouched(batch, bad, lse, true).is_ok());
    }
    for (size_t index :
         {size_t{0}, static_cast<size_t>(AttentionBatch::kLseGuard) - 1, lse.size() - 1}) {
      std::vector<float> bad = lse;
      bad[index] = 0;
      EXPECT_FALSE(check_untouched(batch, out, bad, true).is_ok()) << index;
    }
  }
}

TEST(AttentionBatchTest, ShortenedSequencesKeepTheirFirstTokens) {
  const AttentionBatch batch = make(small_options());
  const Result<AttentionBatch> shorter = shorten(batch, {5, 0, 4, 0});
  ASSERT_TRUE(shorter.is_ok());
  const size_t num_rows = static_cast<size_t>(batch.num_seqs) * batch.num_heads;
  std::vector<double> out(num_rows * 16);
  std::vector<double> lse(num_rows);
  paged_attention(batch.options.spec, shorter->host_args(), out.data(), lse.data());
  std::vector<float> q(16);
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int head = 4;  // of the second KV head
    for (int i = 0; i < 16; ++i) {
      q[i] = batch.q.at(batch.q_index(seq, head) + i);
    }
    const int64_t length = shorter->seq_lens[seq];
    std::vector<double> want(16);
    double want_lse = 0;
    dense_attention({.q = q.data(),
                     .k = shorter->dense_k[seq].data() + length * 16,
                     .v = shorter->dense_v[seq].data() + length * 16,
                     .num_tokens = length,
                     .head_size = 16,
                     .head_size_v = 16,
                     .rules = {.scale = batch.scale}},
                    want.data(), &want_lse);
    const size_t row = static_cast<size_t>(seq) * batch.num_heads + head;
    for (int i = 0; i < 16; ++i) EXPECT_NEAR(out[row * 16 + i], want[i], 1e-12);
  }
  EXPECT_EQ(shorten(batch, {7, 0, 0, 0}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(shorten(batch, {1}).status().code(), StatusCode::kInvalidArgument);
}

TEST(AttentionBatchTest, RefusesWhatCannotBe) {
  BatchOptions options = small_options();
  options.seq_lens = {-1};
  EXPECT_EQ(make_attention_batch(options).status().code(), StatusCode::kInvalidArgument);
  options.seq_lens = {9};
  options.max_blocks_per_seq = 2;
  EXPECT_EQ(make_attention_batch(options).status().code(), StatusCode::kInvalidArgument);
  options.seq_lens = {};
  EXPECT_EQ(make_attention_batch(options).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagejit
