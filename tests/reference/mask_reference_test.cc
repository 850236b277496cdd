// What bidirectional ranges and the bias between query tokens mean: worked examples, and the two
// references against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tools/check/compare.h"
#include "tools/reference/attention_batch.h"
#include "tools/reference/attention_reference.h"

namespace pagejit {
namespace {

AttentionBatch make(const BatchOptions& options) {
  Result<AttentionBatch> batch = make_attention_batch(options);
  EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
  return std::move(batch).value();
}

BatchOptions ranges_of_one(std::vector<PositionRange> ranges, int seq_len, int query_len) {
  BatchOptions options;
  options.spec = {.queries = QueryLengths::kMany,
                  .head_size = 8,
                  .causality = Causality::kCausal,
                  .bidirectional_ranges = true};
  options.seq_lens = {seq_len};
  options.query_lens = {query_len};
  options.bidirectional_ranges = {std::move(ranges)};
  return options;
}

// The keys that each query token sees: one line each, x = seen.
std::vector<std::string> sights(const AttentionBatch& batch) {
  std::vector<std::string> lines;
  for (int query = 0; query < batch.num_queries; ++query) {
    const AttentionBatch::Sight sight = batch.sight_of(query);
    const std::vector<uint8_t> seen = batch.seen_by(query, 0, sight);
    std::string line(static_cast<size_t>(batch.seq_lens[0]), '.');
    for (int64_t key = sight.begin; key < sight.end; ++key) {
      const bool is_seen = seen[static_cast<size_t>(key - sight.begin)] != 0;
      if (is_seen) line[static_cast<size_t>(key)] = 'x';
    }
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(RangesReferenceTest, WorkedExamples) {
  BatchOptions options = ranges_of_one({{2, 5}, {6, 6}, {5, 4}}, 6, 6);
  EXPECT_EQ(sights(make(options)),
            (Lines{"x.....", "xx....", "xxxxx.", "xxxxx.", "xxxxx.", "xxxxxx"}));
  // What overlaps counts for the query tokens that it holds: 2 is in the first alone.
  options.bidirectional_ranges = {{{1, 4}, {3, 6}}};
  EXPECT_EQ(sights(make(options)),
            (Lines{"x.....", "xxxx..", "xxxx..", "xxxxxx", "xxxxxx", "xxxxxx"}));
  // Beyond a window of two keys; and within it.
  options.spec.window = true;
  options.window_left = 1;
  options.bidirectional_ranges = {{{1, 5}}};
  EXPECT_EQ(sights(make(options)),
            (Lines{"x.....", "xxxxx.", ".xxxx.", ".xxxx.", ".xxxx.", "....xx"}));
  options.ranges_within_window = true;
  options.window_right = 1;
  EXPECT_EQ(sights(make(options)),
            (Lines{"x.....", "xxx...", ".xxx..", "..xxx.", "...xx.", "....xx"}));
  // Beyond a chunk of three keys; and within it.
  options.spec.window = false;
  options.spec.chunked = true;
  options.chunk_size = 3;
  EXPECT_EQ(sights(make(options)),
            (Lines{"x.....", "xxx...", "xxx...", "...xx.", "...xx.", "...xxx"}));
  options.ranges_within_window = false;
  EXPECT_EQ(sights(make(options)),
            (Lines{"x.....", "xxxxx.", "xxxxx.", ".xxxx.", ".xxxx.", "...xxx"}));
}

TEST(RangesReferenceTest, QueriesBeforeAllKeysAndRangesBeyondThem) {
  // Positions -2 to 2.
  BatchOptions options = ranges_of_one({{-2, 1}, {2, 9}}, 3, 5);
  EXPECT_EQ(sights(make(options)), (Lines{"x..", "x..", "x..", "xx.", "xxx"}));
}

TEST(QqBiasReferenceTest, IsAddedToTheKeysOfQueryTokensAlone) {
  BatchOptions options;
  options.spec = {.queries = QueryLengths::kMany,
                  .head_size = 8,
                  .causality = Causality::kCausal,
                  .qq_bias = true};
  options.seq_lens = {5};
  options.query_lens = {2};
  AttentionBatch batch = make(options);
  const float infinity = std::numeric_limits<float>::infinity();
  batch.qq_bias_stride_row = 2;
  batch.qq_bias = {0.5f, NAN, -infinity, 2};
  EXPECT_EQ(batch.bias_of(0, batch.sight_of(0)), (std::vector<float>{0, 0, 0, 0.5f}));
  EXPECT_EQ(batch.bias_of(1, batch.sight_of(1)), (std::vector<float>{0, 0, 0, -infinity, 2}));
  // ln(3 e^0 + e^b) where all scores are 0.
  batch.scale = 0;
  const ReferenceResults results = compute_reference(batch);
  EXPECT_NEAR(results.lse[0], std::log(3 + std::exp(0.5)), 1e-12);
  EXPECT_NEAR(results.lse[1], std::log(3 + std::exp(2.0)), 1e-12);
}

TEST(MaskReferenceTest, BothReferencesAgree) {
  for (int bits = 0; bits < 128; ++bits) {
    BatchOptions options;
    KernelSpec& spec = options.spec;
    spec = {.queries = QueryLengths::kMany, .head_size = 8, .block_size = 4, .group_size = 2};
    spec.causality = (bits & 1) != 0 ? Causality::kCausal : Causality::kPerSequence;
    spec.bidirectional_ranges = (bits & 2) != 0;
    spec.qq_bias = (bits & 4) != 0;
    spec.window = (bits & 8) != 0;
    spec.custom_mask = (bits & 16) != 0;
    spec.soft_cap = spec.alibi = spec.sinks = (bits & 32) != 0;
    options.ranges_within_window = options.shared_qq_bias = (bits & 64) != 0;
    options.num_kv_heads = 2;
    options.seq_lens = {41, 7, 5, 0};
    options.query_lens = {3, 0, 9, 2};
    options.window_left = 4;
    options.window_right = 2;
    const AttentionBatch batch = make(options);
    const ReferenceResults dense = compute_reference(batch);
    std::vector<double> out(dense.out.size());
    std::vector<double> lse(dense.lse.size());
    paged_attention(spec, batch.host_args(), out.data(), lse.data());
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], dense.out[i], 1e-12) << bits;
    for (size_t i = 0; i < lse.size(); ++i) {
      if (std::isinf(lse[i])) {
        ASSERT_EQ(lse[i], dense.lse[i]) << bits;
      } else {
        ASSERT_NEAR(lse[i], dense.lse[i], 1e-12) << bits;
      }
    }
  }
}

}  // namespace
}  // namespace pagejit
