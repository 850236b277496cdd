// Sparse attention by one call: the tokens that an indexer chooses are those with the greatest
// logits, and the result is that of dense attention masked to them, however the rows are cut.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/sparse_attention_fixture.h"

namespace pagejit {
namespace {

TEST_F(SparseAttentionTest, IsDenseAttentionMaskedToTheGreatestTokens) {
  SparseCase all_tokens = decode_case(1);
  all_tokens.top_k = 1000;  // more than the table holds
  SparseCase decode_ds_mla = decode_case(2);
  SparseCase prefill_ds_mla = prefill_case();
  decode_ds_mla.ds_mla = prefill_ds_mla.ds_mla = true;
  for (const SparseCase& c : {decode_case(1), decode_case(2), decode_case(4), all_tokens,
                              prefill_case(), ends_case(), decode_ds_mla, prefill_ds_mla}) {
    SCOPED_TRACE(static_cast<int>(c.use));
    Call call = make_call(c);
    const SparseResults results = launch(call, prepare_sparse(c));
    expect_right(call, results);
    // One token more in a mask is seen.
    call.batch.custom_mask[0] ^= 0xff;
    EXPECT_FALSE(
        compare_results(call.batch, compute_reference(call.batch), results.attention, true, 1)
            .passed);
  }
}

TEST_F(SparseAttentionTest, RowsWithoutTokensGiveZeros) {
  const SparseCase c = decode_case(1);
  Call call = make_call(c);
  call.args.max_blocks_per_seq = 0;
  call.positions.assign(call.positions.size(), -1);
  expect_right(call, launch(call, prepare_sparse(c)));
}

// Budgets of one row, of a few, of all; lists with a place of their own and without; a bound of the
// length.
TEST_F(SparseAttentionTest, ChunksOfAnySizeGiveTheSameBits) {
  for (const SparseCase& c : {decode_case(1), decode_case(2), prefill_case(), ends_case()}) {
    SCOPED_TRACE(static_cast<int>(c.use));
    Call call = make_call(c);
    const SparseAttentionKernel kernel = prepare_sparse(c);
    EXPECT_EQ(kernel.num_chunks(call.args), 1);
    const SparseResults whole = launch(call, kernel);
    const int columns = c.use == SparseUse::kContiguous ? call.args.num_index_keys
                                                        : call.args.max_blocks_per_seq * kBlockSize;
    for (const int rows : {1, 2, 3, 7}) {
      call.args.logits_bytes = rows * index_logits_stride(columns) * 4;
      if (c.use == SparseUse::kSeqLens && rows < c.query_lens[0]) continue;
      EXPECT_GE(kernel.num_chunks(call.args), (call.num_rows + rows - 1) / rows) << rows;
      EXPECT_TRUE(launch(call, kernel) == whole) << rows;
    }
    call.args.max_seq_len = 300;
    EXPECT_TRUE(launch(call, kernel) == whole);
    call.args.indices = nullptr;
    SparseResults again = launch(call, kernel);
    again.indices = whole.indices;
    EXPECT_TRUE(again == whole);
  }
}

TEST_F(SparseAttentionTest, IsItsPartsOneAfterTheOther) {
  const SparseCase c = decode_case(2);
  Call call = make_call(c);
  const SparseResults at_once = launch(call, prepare_sparse(c));
  const SparseAttentionArgs& from = call.args;
  const int columns = from.max_blocks_per_seq * kBlockSize;
  const DeviceBuffer logits_buffer =
      upload(std::vector<float>(static_cast<size_t>(call.num_rows * index_logits_stride(columns))));
  const SparseAttentionParts parts = sparse_attention_parts(spec_of(c));
  IndexLogitsArgs logits;
  logits.q = from.index_q;
  logits.q_stride_head = from.index_q_stride_head;
  logits.q_stride_row = from.index_q_stride_row;
  logits.weights = from.index_weights;
  logits.weights_stride = from.index_weights_stride;
  logits.k = from.index_k;
  logits.k_stride = from.index_k_stride;
  logits.block_table = from.block_table;
  logits.block_table_stride = from.block_table_stride;
  logits.ranges = from.ranges;
  logits.num_rows = call.num_rows;
  logits.num_columns = columns;
  logits.logits = logits_buffer.data<float>();
  logits.logits_stride = index_logits_stride(columns);
  ASSERT_TRUE(run(prepare_family(parts.logits), logits));
  call.indices = upload(std::vector<int32_t>(at_once.indices.size(), -7));
  TopKArgs top;
  top.logits = logits.logits;
  top.logits_stride = logits.logits_stride;
  top.ranges = from.ranges;
  top.num_rows = call.num_rows;
  top.num_columns = columns;
  top.k = c.top_k;
  top.indices = call.indices.data<int32_t>();
  top.indices_stride = c.top_k;
  ASSERT_TRUE(run(prepare_family(parts.top_k), top));
  AttentionArgs attention = call.device->args();
  attention.num_seqs = call.num_rows;
  attention.seq_lens = nullptr;
  attention.token_lists = top.indices;
  attention.token_list_stride = attention.max_list_len = c.top_k;
  attention.query_seqs = from.query_seqs;
  ASSERT_TRUE(call.device->reset_results().is_ok());
  ASSERT_TRUE(run(prepare(parts.attention), attention));
  EXPECT_TRUE(download(call) == at_once);
}

// Rows are split by the top-k and by attention, which share counters, with another attention kernel
// in between.
TEST_F(SparseAttentionTest, OneWorkspaceServesAllLaunches) {
  const SparseCase c = decode_case(2);
  Call call = make_call(c);
  call.args.num_splits = 8;
  const SparseAttentionKernel kernel = prepare_sparse(c);
  const SparseResults first = launch(call, kernel);
  expect_right(call, first);
  const Kernel dense = prepare(dense_of(c));
  AttentionArgs args = call.device->args();
  args.num_splits = 2;
  args.workspace = call.args.workspace;
  args.workspace_bytes = call.args.workspace_bytes;
  ASSERT_TRUE(run(dense, args));
  ASSERT_TRUE(call.device->reset_results().is_ok());
  ASSERT_TRUE(run(kernel, call.args));
  EXPECT_TRUE(download(call) == first);
}

// Launches of all chunks in one graph, replayed with other lengths.
TEST_F(SparseAttentionTest, OneCapturedGraphServesChangingLengths) {
  const SparseCase c = decode_case(2);
  Call call = make_call(c);
  const SparseAttentionKernel kernel = prepare_sparse(c);
  call.args.logits_bytes = 5 * call.args.max_blocks_per_seq * kBlockSize * 4;
  make_workspace(call, kernel);
  const DeviceBuffer workspace = std::move(call.workspace);  // launch() makes others
  const Driver& driver = session().driver();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const Status captured = kernel.launch(call.args, stream);
  ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_TRUE(captured.is_ok()) << captured.to_string();
  ASSERT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  for (const std::vector<int32_t>& lens :
       {std::vector<int32_t>{300, 64, 20, 1, 130}, {2, 63, 0, 1, 64}, {257, 1, 20, 0, 129}}) {
    ASSERT_TRUE(call.seq_lens.upload(0, lens.data(), lens.size() * sizeof(int32_t)).is_ok());
    ASSERT_TRUE(call.device->reset_results().is_ok());
    ASSERT_EQ(driver.cuGraphLaunch(executable, stream), CUDA_SUCCESS) << report();
    ASSERT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS) << report();
    call.batch.seq_lens = lens;
    for (int row = 0; row < call.num_rows; ++row) {
      call.positions[static_cast<size_t>(row)] = lens[static_cast<size_t>(row / 2)] - 2 + row % 2;
    }
    const SparseResults results = download(call);
    for (int row = 0; row < call.num_rows; ++row) check_list(call, results, row);
    EXPECT_TRUE(launch(call, kernel) == results) << lens[0];
  }
  EXPECT_EQ(driver.cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamDestroy(stream), CUDA_SUCCESS);
}

// ---- Debug reports ----

TEST_F(SparseAttentionTest, WhatAnyKernelFindsIsReported) {
  SparseCase c = decode_case(1);
  c.debug = true;
  Call call = make_call(c);
  const SparseAttentionKernel kernel = prepare_sparse(c);
  expect_right(call, launch(call, kernel));
  EXPECT_EQ(kernel.read_debug_report(call.args.workspace, nullptr).message(), "");
  const auto launch_with = [&](int32_t seq_len) {
    std::vector<int32_t> lens = call.batch.seq_lens;
    lens[3] = seq_len;
    call.seq_lens = upload(lens);
    call.args.ranges.seq_lens = call.seq_lens.data<int32_t>();
    launch(call, kernel);
  };
  const auto expect_reported = [&](const std::string& part) {
    const Status status = kernel.read_debug_report(call.args.workspace, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kDeviceCheckFailed) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  // A block that the sequence does not have, of which no token is chosen.
  launch_with(kBlockSize + 1);
  expect_reported("index logits: block_table[3][1] is ");
  EXPECT_EQ(kernel.read_debug_report(call.args.workspace, nullptr).message(), "");
  const int columns = call.args.max_blocks_per_seq * kBlockSize;
  launch_with(columns + 9);
  expect_reported("index logits: block_table[3][1] is ");
  expect_reported("top-k: row 3 ends at " + std::to_string(columns + 9) +
                  ": must be at most the number of columns");
  EXPECT_EQ(kernel.read_debug_report(call.args.workspace, nullptr).message(), "");
  // A sequence without any block: attention finds it too, and says so first.
  call.args.num_blocks = 1;
  launch_with(1);
  expect_reported("of its block table is ");
  expect_reported("index logits: block_table[");
  // No number of blocks, no check of them.
  call.args.num_blocks = 0;
  launch_with(1);
  EXPECT_EQ(kernel.read_debug_report(call.args.workspace, nullptr).message(), "");
}

TEST_F(SparseAttentionTest, TheCheckedBuildFindsNothingAndDidLook) {
  if (device().emulator == nullptr) GTEST_SKIP() << "looks into the emulator; this is a GPU";
  for (const SparseCase& c : {decode_case(2), prefill_case()}) {
    Call call = make_call(c);
    call.args.logits_bytes = 5 * 512 * 4;
    device().emulator->reset_counters();
    const SparseResults results = launch(call, prepare_on(checked_engine(), c));
    EXPECT_GT(device().emulator->counters().checked_global_accesses, 0u);
    expect_right(call, results);
  }
}

}  // namespace
}  // namespace pagejit
