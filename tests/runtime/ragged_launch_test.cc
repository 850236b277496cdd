// What launch() passes to the driver and what it refuses where queries are ragged or the KV table
// is not the default one.
#include <algorithm>
#include <functional>
#include <string>

#include "tests/runtime/launch_fixture.h"

namespace pagejit {
namespace {

// Ragged queries with every option.
class RaggedLaunchTest : public LaunchTest {
 protected:
  RaggedLaunchTest() {
    kernel = prepare(*engine, {.queries = QueryLengths::kFew,
                               .group_size = 4,
                               .causality = Causality::kPerSequence,
                               .window = true,
                               .soft_cap = true,
                               .alibi = true,
                               .sinks = true});
  }

  static AttentionArgs legal_ragged_args() {
    AttentionArgs args = legal_args();
    args.query_start_loc = reinterpret_cast<const int32_t*>(0x8000);
    args.num_query_tokens = 10;
    args.causal_flags = reinterpret_cast<const uint8_t*>(0x8101);
    args.window_left = 30;
    args.soft_cap = 50;
    args.alibi_slopes = reinterpret_cast<const float*>(0x8200);
    args.sinks = reinterpret_cast<const float*>(0x8300);
    return args;
  }

  void expect_invalid_ragged(const std::function<void(AttentionArgs&)>& change,
                             const std::string& part) {
    AttentionArgs args = legal_ragged_args();
    change(args);
    expect_refused(StatusCode::kInvalidArgument, args, part);
  }
};

TEST_F(RaggedLaunchTest, GridAndParametersReachTheDriver) {
  AttentionArgs args = legal_ragged_args();
  args.num_splits = 3;
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = 1 << 30;
  ASSERT_TRUE(kernel.launch(args, nullptr));
  const pagejit_stub::LaunchRecord record = script->last_launch();
  // Tiles of 16 rows: 10 tokens x 4 heads are 40 rows, 3 tiles, and one more where the second
  // sequence begins; and two further splits of each of the two sequences.
  EXPECT_EQ(record.config.gridDimX, 3u + 1u + 2u * 2u);
  EXPECT_EQ(record.config.gridDimY, 8u);
  EXPECT_EQ(record.config.gridDimZ, 1u);
  const pagejit_shared::AttentionParams& params = record.params;
  EXPECT_EQ(params.query_start_loc, args.query_start_loc);
  EXPECT_EQ(params.causal_flags, args.causal_flags);
  EXPECT_EQ(params.alibi_slopes, args.alibi_slopes);
  EXPECT_EQ(params.sinks, args.sinks);
  EXPECT_EQ(params.num_seqs, 2);
  EXPECT_EQ(params.num_query_tokens, 10);
  EXPECT_EQ(params.num_row_tiles, 4);
  EXPECT_EQ(params.window_left, 30);
  EXPECT_EQ(params.window_right, -1);
  EXPECT_EQ(params.soft_cap, 50);
}

// Where each sequence's tiles are, for all divisions of some rows: none lies behind the bound, and
// it is not one more than is needed.
TEST(RowTilesTest, TheirBoundIsMetByEveryDivisionOfTheQueries) {
  using pagejit_shared::first_row_tile;
  for (const int rows_per_tile : {16, 24}) {
    for (const int group_size : {1, 5, 16}) {
      for (int tokens = 0; tokens <= 40; ++tokens) {
        int greatest = 0;
        for (int first = 0; first <= tokens; ++first) {
          const int begins[] = {0, first, tokens};
          for (int seq = 0; seq < 2; ++seq) {
            const int rows = (begins[seq + 1] - begins[seq]) * group_size;
            const int end = first_row_tile(seq, begins[seq], group_size, rows_per_tile) +
                            (rows + rows_per_tile - 1) / rows_per_tile;
            greatest = std::max(greatest, end);
          }
        }
        const int bound = pagejit_shared::row_tiles_bound(2, tokens, group_size, rows_per_tile);
        EXPECT_EQ(bound, std::max({1, greatest, tokens == 0 ? 1 : 2}))
            << tokens << " tokens, " << group_size << " heads, " << rows_per_tile << " rows";
      }
    }
  }
  EXPECT_EQ(pagejit_shared::row_tiles_bound(1, 64, 4, 128), 2);
  EXPECT_EQ(pagejit_shared::row_tiles_bound(1, 0, 4, 128), 1) << "an empty grid is no launch";
}

TEST_F(RaggedLaunchTest, WhatTheSpecAsksForIsChecked) {
  expect_invalid_ragged([](AttentionArgs& a) { a.query_start_loc = nullptr; },
                        "query_start_loc is null");
  expect_invalid_ragged(
      [](AttentionArgs& a) { a.query_start_loc = reinterpret_cast<const int32_t*>(0x8002); },
      "query_start_loc is 0x8002: must be aligned to 4 bytes");
  expect_invalid_ragged([](AttentionArgs& a) { a.num_query_tokens = -1; },
                        "num_query_tokens -1: must be in [0, 536870911] for group_size 4");
  expect_invalid_ragged([](AttentionArgs& a) { a.num_query_tokens = 536870912; },
                        "num_query_tokens 536870912");
  expect_invalid_ragged([](AttentionArgs& a) { a.causal_flags = nullptr; }, "causal_flags is null");
  expect_invalid_ragged([](AttentionArgs& a) { a.soft_cap = 0; },
                        "soft_cap 0: must be positive and finite");
  expect_invalid_ragged([](AttentionArgs& a) { a.soft_cap = -50; }, "soft_cap -50");
  expect_invalid_ragged([](AttentionArgs& a) { a.alibi_slopes = nullptr; }, "alibi_slopes is null");
  expect_invalid_ragged([](AttentionArgs& a) { a.sinks = reinterpret_cast<const float*>(0x8301); },
                        "sinks is 0x8301: must be aligned to 4 bytes");
}

TEST_F(RaggedLaunchTest, TheTableOfTheSpecIsChecked) {
  const auto refuse = [&](const std::function<void(AttentionArgs&)>& change,
                          const std::string& part) { expect_invalid_ragged(change, part); };
  kernel = prepare(*engine, {.group_size = 4, .kv_table = KvTable::kCsr, .chunked = true});
  const auto csr = [](AttentionArgs& a) {
    a.block_table = nullptr;
    a.seq_lens = nullptr;
    a.chunk_size = 10;
    a.kv_indptr = reinterpret_cast<const int32_t*>(0x9000);
    a.kv_indices = reinterpret_cast<const int32_t*>(0x9100);
    a.kv_last_block_len = reinterpret_cast<const int32_t*>(0x9200);
  };
  const auto csr_but = [&](auto change) {
    return [&csr, change](AttentionArgs& a) {
      csr(a);
      change(a);
    };
  };
  refuse(csr_but([](auto& a) { a.kv_indptr = nullptr; }), "kv_indptr is null");
  refuse(csr_but([](auto& a) { a.kv_indices = nullptr; }), "kv_indices is null");
  refuse(csr_but([](auto& a) { a.kv_last_block_len = nullptr; }), "kv_last_block_len is null");
  refuse(csr_but([](auto& a) { a.chunk_size = 0; }), "chunk_size 0: must be positive");
  AttentionArgs args = legal_args();
  csr(args);
  EXPECT_TRUE(kernel.launch(args, nullptr));
  EXPECT_EQ(script->last_launch().params.kv_indices, args.kv_indices);
  EXPECT_EQ(script->last_launch().params.chunk_size, 10);
  // Without a table nothing says how long sequences may be.
  args.num_splits = 0;
  ASSERT_TRUE(kernel.launch(args, nullptr));
  EXPECT_EQ(script->last_launch().config.gridDimX, 1u);
}

TEST_F(RaggedLaunchTest, ACustomMaskNeedsItsBits) {
  kernel = prepare(*engine, {.group_size = 4, .custom_mask = true});
  AttentionArgs args = legal_args();
  expect_refused(StatusCode::kInvalidArgument, args, "custom_mask is null");
  args.custom_mask = reinterpret_cast<const uint8_t*>(0x9001);
  expect_refused(StatusCode::kInvalidArgument, args, "custom_mask_indptr is null");
  args.custom_mask_indptr = reinterpret_cast<const int32_t*>(0x9100);
  EXPECT_TRUE(kernel.launch(args, nullptr));
  EXPECT_EQ(script->last_launch().params.custom_mask, args.custom_mask);
}

TEST_F(RaggedLaunchTest, RangesAreChecked) {
  kernel = prepare(*engine, {.group_size = 4, .bidirectional_ranges = true});
  AttentionArgs args = legal_args();
  args.max_bidirectional_ranges = -1;
  expect_refused(StatusCode::kInvalidArgument, args,
                 "max_bidirectional_ranges -1: must not be negative");
  args.max_bidirectional_ranges = 3;
  expect_refused(StatusCode::kInvalidArgument, args, "bidirectional_ranges is null");
  args.bidirectional_ranges = reinterpret_cast<const int32_t*>(0x9402);
  expect_refused(StatusCode::kInvalidArgument, args,
                 "bidirectional_ranges is 0x9402: must be aligned to 4 bytes");
  args.bidirectional_ranges = reinterpret_cast<const int32_t*>(0x9400);
  args.bidirectional_ranges_stride = 5;
  expect_refused(
      StatusCode::kInvalidArgument, args,
      "bidirectional_ranges_stride 5: must be 0 (the same ranges for all sequences) or at "
      "least twice max_bidirectional_ranges (3)");
  for (const int64_t stride : {0, 6, 100}) {
    args.bidirectional_ranges_stride = stride;
    args.ranges_within_window = stride == 6;
    EXPECT_TRUE(kernel.launch(args, nullptr));
    const pagejit_shared::AttentionParams& params = script->last_launch().params;
    EXPECT_EQ(params.bidirectional_ranges, args.bidirectional_ranges);
    EXPECT_EQ(params.bidirectional_ranges_stride, stride);
    EXPECT_EQ(params.num_bidirectional_ranges, 3);
    EXPECT_EQ(params.ranges_within_window, stride == 6 ? 1 : 0);
  }
  args.max_bidirectional_ranges = 0;
  args.bidirectional_ranges = nullptr;
  EXPECT_TRUE(kernel.launch(args, nullptr)) << "no ranges need no array";
}

TEST_F(RaggedLaunchTest, ABiasIsChecked) {
  kernel = prepare(*engine, {.group_size = 4, .qq_bias = true});
  AttentionArgs args = legal_args();
  expect_refused(StatusCode::kInvalidArgument, args, "qq_bias is null");
  args.qq_bias = reinterpret_cast<const float*>(0x9502);
  expect_refused(StatusCode::kInvalidArgument, args,
                 "qq_bias is 0x9502: must be aligned to 4 bytes");
  args.qq_bias = reinterpret_cast<const float*>(0x9504);
  args.qq_bias_stride_seq = -1;
  expect_refused(StatusCode::kInvalidArgument, args,
                 "qq_bias_stride_seq -1: must be 0 (one matrix for all sequences) or more");
  args.qq_bias_stride_seq = 70;
  args.qq_bias_stride_row = -8;
  expect_refused(StatusCode::kInvalidArgument, args, "qq_bias_stride_row -8: must not be negative");
  args.qq_bias_stride_row = 8;
  EXPECT_TRUE(kernel.launch(args, nullptr));
  const pagejit_shared::AttentionParams& params = script->last_launch().params;
  EXPECT_EQ(params.qq_bias, args.qq_bias);
  EXPECT_EQ(params.qq_bias_stride_seq, 70);
  EXPECT_EQ(params.qq_bias_stride_row, 8);
}

TEST_F(RaggedLaunchTest, BlockSparseNumbersAreReducedToTheStride) {
  kernel = prepare(*engine, {.group_size = 4, .block_sparse = true});
  AttentionArgs args = legal_args();  // 8 KV heads, 32 query heads
  const auto launched = [&](const BlockSparseArgs& sparse) {
    args.block_sparse = sparse;
    const Status status = kernel.launch(args, nullptr);
    EXPECT_TRUE(status) << status.to_string();
    return script->last_launch().params.sparse;
  };
  pagejit_shared::BlockSparseParams params = launched({.local_blocks = 16, .vert_stride = 8});
  EXPECT_EQ(params.local_blocks, 16);
  EXPECT_EQ(params.vert_stride, 8);
  EXPECT_EQ(params.block_size, 64);
  EXPECT_EQ(params.offset, 1);
  EXPECT_EQ(params.head_step, 0);
  // (3 * 32 + head) * 2 + 1
  params = launched({.vert_stride = 7, .head_sliding_step = 9, .tp_rank = 3});
  EXPECT_EQ(params.offset, (3 * 32 * 9 + 1) % 7);
  EXPECT_EQ(params.head_step, 2);
  // (3 * 8 + KV head) * 9 + 1
  params = launched({.vert_stride = 7, .head_sliding_step = -9, .tp_rank = 3});
  EXPECT_EQ(params.offset, (3 * 8 * 9 + 1) % 7);
  EXPECT_EQ(params.head_step, -2);
}

TEST_F(RaggedLaunchTest, BlockSparseNumbersAreChecked) {
  kernel = prepare(*engine, {.group_size = 4, .block_sparse = true});
  const auto refuse = [&](const BlockSparseArgs& sparse, const std::string& part) {
    AttentionArgs args = legal_args();
    args.block_sparse = sparse;
    expect_refused(StatusCode::kInvalidArgument, args, part);
  };
  refuse({.local_blocks = -1}, "block_sparse.local_blocks -1: must be in [0, 2147483647]");
  refuse({.vert_stride = 0}, "block_sparse.vert_stride 0: must be in [1, 65536]");
  refuse({.vert_stride = 65537}, "block_sparse.vert_stride 65537: must be in [1, 65536]");
  refuse({.block_size = 0}, "block_sparse.block_size 0: must be in [1, 65536]");
  refuse({.tp_rank = -1}, "block_sparse.tp_rank -1: must be in [0, 2147483647]");
}

TEST_F(RaggedLaunchTest, ContiguousKvNeedsItsStarts) {
  kernel = prepare(*engine, {.block_size = 1, .group_size = 4, .kv_table = KvTable::kContiguous});
  AttentionArgs args = legal_args();
  args.block_table = nullptr;
  args.seq_lens = nullptr;
  expect_refused(StatusCode::kInvalidArgument, args, "kv_start_loc is null");
  args.kv_start_loc = reinterpret_cast<const int32_t*>(0x9000);
  EXPECT_TRUE(kernel.launch(args, nullptr));
}

TEST_F(RaggedLaunchTest, WhatTheSpecDoesNotAskForIsIgnored) {
  kernel = prepare(*engine, kSpec);
  AttentionArgs args = legal_args();
  args.soft_cap = -1;
  args.num_query_tokens = -1;
  args.block_sparse = {.local_blocks = -1, .vert_stride = 0, .block_size = 0, .tp_rank = -1};
  EXPECT_TRUE(kernel.launch(args, nullptr));
}

}  // namespace
}  // namespace pagejit
