// What block-sparse attention means: the batches' view of it, worked examples and the reference
// that walks the block table, against each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tools/check/compare.h"
#include "tools/reference/attention_batch.h"
#include "tools/reference/attention_reference.h"

namespace pagejit {
namespace {

AttentionBatch make(const BlockSparseArgs& sparse, const std::vector<int>& seq_lens,
                    const std::vector<int>& query_lens = {}) {
  BatchOptions options;
  options.spec = {.head_size = 8, .block_size = 4, .group_size = 2, .block_sparse = true};
  if (!query_lens.empty()) options.spec.queries = QueryLengths::kMany;
  options.num_kv_heads = 2;
  options.seq_lens = seq_lens;
  options.query_lens = query_lens;
  options.block_sparse = sparse;
  Result<AttentionBatch> batch = make_attention_batch(options);
  EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
  return std::move(batch).value();
}

// The sparse blocks of which a head sees the tokens, as digits; x where only some of a block's are.
std::string blocks_seen(const AttentionBatch& batch, int query, int head) {
  const AttentionBatch::Sight sight = batch.sight_of(query);
  const std::vector<uint8_t> seen = batch.seen_by(query, head, sight);
  EXPECT_EQ(static_cast<int64_t>(seen.size()), sight.end - sight.begin);
  const int block_size = batch.options.block_sparse.block_size;
  std::string text;
  for (size_t first = 0; first < seen.size(); first += static_cast<size_t>(block_size)) {
    const auto begin = seen.begin() + static_cast<int64_t>(first);
    const int64_t size = std::min<int64_t>(block_size, seen.end() - begin);
    const int64_t num_seen = std::count(begin, begin + size, 1);
    if (num_seen == 0) continue;
    text += num_seen == size ? std::to_string(first / static_cast<size_t>(block_size)) : "x";
  }
  return text;
}

// Ten sparse blocks of 4 tokens, the last with one of them: the query is in block 9.
TEST(BlockSparseReferenceTest, WorkedExamples) {
  const std::vector<int> length = {37};
  const auto seen = [&](const BlockSparseArgs& sparse, int head) {
    return blocks_seen(make(sparse, length), 0, head);
  };
  // (k + 1) % 4 == 0, and the last two.
  BlockSparseArgs sparse = {.local_blocks = 2, .vert_stride = 4, .block_size = 4};
  for (int head = 0; head < 4; ++head) EXPECT_EQ(seen(sparse, head), "3789");
  // (k + head + 1) % 4 == 0.
  sparse.head_sliding_step = 1;
  EXPECT_EQ(seen(sparse, 0), "3789");
  EXPECT_EQ(seen(sparse, 1), "2689");
  EXPECT_EQ(seen(sparse, 2), "1589");
  EXPECT_EQ(seen(sparse, 3), "0489");
  // Four heads on each GPU: as the same heads of rank 0, for this stride; not for a stride of 3.
  sparse.tp_rank = 1;
  EXPECT_EQ(seen(sparse, 1), "2689");
  sparse.vert_stride = 3;
  EXPECT_EQ(seen(sparse, 0), "14789");  // (k + 5) % 3
  EXPECT_EQ(seen(sparse, 1), "03689");  // (k + 6) % 3
  // By KV head, of which there are two: (k + 3 * KV head + 1) % 4, then (k + 3 * (2 + KV head) +
  // 1).
  sparse = {.local_blocks = 1, .vert_stride = 4, .block_size = 4, .head_sliding_step = -3};
  EXPECT_EQ(seen(sparse, 0), "379");
  EXPECT_EQ(seen(sparse, 1), "379");
  EXPECT_EQ(seen(sparse, 2), "0489");
  sparse.tp_rank = 1;
  EXPECT_EQ(seen(sparse, 0), "159");
  // No local blocks; a stride of 1; more local blocks than there are.
  sparse = {.local_blocks = 0, .vert_stride = 4, .block_size = 4};
  EXPECT_EQ(seen(sparse, 0), "37");
  sparse.vert_stride = 1;
  EXPECT_EQ(seen(sparse, 0), "0123456789");
  sparse = {.local_blocks = 30, .vert_stride = 4, .block_size = 4};
  EXPECT_EQ(seen(sparse, 0), "0123456789");
}

TEST(BlockSparseReferenceTest, EachQueryTokenIsJudgedByItsOwnPosition) {
  // 12 keys in three blocks of 4, 14 queries: two stand before all keys.
  const AttentionBatch batch =
      make({.local_blocks = 1, .vert_stride = 100, .block_size = 4}, {12}, {14});
  for (int query = 0; query < 14; ++query) {
    const int position = query - 2;
    // Blocks behind the query's own count as local.
    const std::string want = position < 4 ? "012" : position < 8 ? "12" : "2";
    EXPECT_EQ(blocks_seen(batch, query, 0), want) << query;
  }
}

TEST(BlockSparseReferenceTest, BothReferencesAgree) {
  for (const int step : {0, 1, 3, -1, -2}) {
    for (const int local_blocks : {0, 1, 3}) {
      for (const int block_size : {1, 5, 8}) {
        const BlockSparseArgs sparse = {.local_blocks = local_blocks,
                                        .vert_stride = 3,
                                        .block_size = block_size,
                                        .head_sliding_step = step,
                                        .tp_rank = 1};
        for (const bool is_ragged : {false, true}) {
          const std::vector<int> query_lens =
              is_ragged ? std::vector<int>{3, 0, 9} : std::vector<int>{};
          const AttentionBatch batch = make(sparse, {41, 7, 5}, query_lens);
          const ReferenceResults dense = compute_reference(batch);
          std::vector<double> out(dense.out.size());
          std::vector<double> lse(dense.lse.size());
          paged_attention(batch.options.spec, batch.host_args(), out.data(), lse.data());
          for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], dense.out[i], 1e-12);
          for (size_t i = 0; i < lse.size(); ++i) {
            if (std::isinf(lse[i])) {
              ASSERT_EQ(lse[i], dense.lse[i]);
            } else {
              ASSERT_NEAR(lse[i], dense.lse[i], 1e-12);
            }
          }
        }
      }
    }
  }
}

TEST(BlockSparseReferenceTest, ValuesOfVllmsTestAreSmallAndUnscaled) {
  BatchOptions options;
  options.spec = {
      .q_dtype = DataType::kFloat16, .kv_dtype = DataType::kFloat8E4m3, .head_size = 64};
  options.seq_lens = {200};
  options.vllm_values = true;
  const Result<AttentionBatch> batch = make_attention_batch(options);
  ASSERT_TRUE(batch.is_ok()) << batch.status().to_string();
  EXPECT_EQ(batch->k_scale[0], 1);
  EXPECT_EQ(batch->v_scale[0], 1);
  for (const std::vector<float>* values : {&batch->dense_k[0], &batch->dense_v[0]}) {
    const auto [least, greatest] = std::minmax_element(values->begin(), values->end());
    EXPECT_LE(*greatest, 0.125f);  // 1 / sqrt(64)
    EXPECT_GE(*least, -0.125f);
    EXPECT_GT(*greatest, 0.12f);
    EXPECT_LT(*least, -0.12f);
  }
}

}  // namespace
}  // namespace pagejit
