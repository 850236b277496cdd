// Cascades against the float64 reference over concatenated KV, against the flat kernel, and vLLM's
// cases; captured graphs; debug reports.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/cascade_fixture.h"
#include "tests/sweep/error_summary.h"

namespace pagejit {
namespace {

constexpr DataType kBF16 = DataType::kBFloat16;

// ---- Equality with the flat reference ----

class CascadeCaseTest : public CascadeTest, public testing::WithParamInterface<CascadeCase> {};

TEST_P(CascadeCaseTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  expect_right(engine(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cases, CascadeCaseTest, testing::ValuesIn(cascade_cases()),
                         [](const testing::TestParamInfo<CascadeCase>& test) {
                           return test.param.name;
                         });

// ---- vLLM's cascade cases ----

class VllmCascadeTest : public CascadeTest, public testing::WithParamInterface<CascadeCase> {};

TEST_P(VllmCascadeTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  expect_right(engine(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cases, VllmCascadeTest, testing::ValuesIn(vllm_cascade_cases()),
                         [](const testing::TestParamInfo<CascadeCase>& test) {
                           return test.param.name;
                         });

// ---- Beside the flat kernel ----

TEST_F(CascadeTest, IsTheFlatKernelsResultWithinRounding) {
  for (const QueryLengths queries : {QueryLengths::kOne, QueryLengths::kFew}) {
    KernelSpec spec = make_spec(kBF16, 128, 16, 4);
    if (queries != QueryLengths::kOne) spec = ragged(queries, kBF16, 128, 16, 4);
    CascadeCheckOptions options;
    options.batch.prefixes = {{{5, 320}}, {{3, 48}, {2, 16}}};
    options.batch.batch.num_kv_heads = 2;
    options.batch.batch.seq_lens = {30, 1, 17, 64, 7};
    if (queries != QueryLengths::kOne) options.batch.batch.query_lens = {3, 1, 17, 9, 2};
    const CascadeKernel cascade = prepare_cascade(make_cascade(spec));
    const CascadeBatch batch = make(cascade.spec(), options);
    ASSERT_TRUE(batch.has_flat_table);
    Result<DeviceCascade> device = DeviceCascade::upload(session(), cascade, batch);
    ASSERT_TRUE(device.is_ok()) << device.status().to_string();
    const AttentionResults merged = launch(cascade, *device);

    const Kernel flat = prepare(spec);
    AttentionArgs args = device->flat().args();
    args.num_splits = 1;
    const ReferenceResults reference = compute_reference(batch.flat);
    const CheckReport report =
        launch_and_compare(flat, device->flat(), args, batch.flat, reference);
    expect_passed(report);
    const Result<AttentionResults> whole = device->flat().download();
    ASSERT_TRUE(whole.is_ok());
    for (int query = 0; query < batch.flat.num_queries; ++query) {
      for (int head = 0; head < batch.flat.num_heads; ++head) {
        const auto row = static_cast<size_t>(query * batch.flat.num_heads + head);
        // Each rounds P and the result.
        const double allowed = 2 * reference.rounding[row];
        const int64_t at = batch.flat.out_index(query, head);
        for (int i = 0; i < spec.head_size; ++i) {
          ASSERT_NEAR(merged.out.at(at + i), whole->out.at(at + i), allowed)
              << "query token " << query << ", head " << head << ", element " << i;
        }
        const size_t lse = row + AttentionBatch::kLseGuard;
        ASSERT_NEAR(merged.lse[lse], whole->lse[lse], 2 * reference.lse_tolerance[row]);
      }
    }
  }
}

TEST_F(CascadeTest, LseIsWrittenOnlyWhereItIsWanted) {
  CascadeCheckOptions options = cascade_cases().front().options();
  options.with_lse = false;
  const Result<CheckReport> result =
      run_cascade_check(engine(), session(), make_cascade(make_spec(kBF16, 64, 16, 4)), options);
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  expect_passed(*result);
}

// ---- Captured graphs ----

// num_levels + 1 launches in one graph, replayed with other lengths and other query tokens.
TEST_F(CascadeTest, OneCapturedGraphServesChangingLengths) {
  const CascadeKernel kernel =
      prepare_cascade(make_cascade(ragged(QueryLengths::kFew, kBF16, 64, 16, 4)));
  CascadeCheckOptions options;
  options.batch.prefixes = {{{4, 800}}, {{1, 33}, {3, 600}}};
  options.batch.batch.num_kv_heads = 2;
  options.batch.batch.seq_lens = {30, 40, 50, 300};
  options.batch.batch.query_lens = {4, 4, 4, 20};
  options.batch.batch.unused_queries = 2;
  const CascadeBatch batch = make(kernel.spec(), options);
  Result<DeviceCascade> device = DeviceCascade::upload(session(), kernel, batch, 3);
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();

  const Driver& driver = session().driver();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const Status captured = kernel.launch(device->args(), stream);
  ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_TRUE(captured.is_ok()) << captured.to_string();
  ASSERT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);

  struct Replay {
    std::vector<std::vector<int>> seq_lens;
    std::vector<int> queries;
  };
  const std::vector<Replay> replays = {
      {{{800}, {33, 600}, {30, 40, 50, 300}}, {4, 4, 4, 20}},
      {{{1}, {0, 599}, {30, 0, 50, 1}}, {1, 0, 1, 1}},
      {{{0}, {0, 0}, {10, 20, 30, 40}}, {10, 5, 9, 8}},
      {{{790}, {17, 16}, {0, 40, 0, 0}}, {0, 32, 0, 0}},
      {{{512}, {0, 64}, {1, 1, 1, 1}}, {1, 1, 1, 1}},
  };
  for (const Replay& replay : replays) {
    const Result<CascadeBatch> now = change_lengths(batch, replay.seq_lens, replay.queries);
    ASSERT_TRUE(now.is_ok()) << now.status().to_string();
    ASSERT_TRUE(device->set_lengths(*now).is_ok());
    ASSERT_TRUE(device->flat().reset_results().is_ok());
    ASSERT_EQ(driver.cuGraphLaunch(executable, stream), CUDA_SUCCESS) << report();
    ASSERT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS) << report();
    const Result<AttentionResults> results = device->flat().download();
    ASSERT_TRUE(results.is_ok());
    const CheckReport result =
        compare_results(now->flat, compute_reference(now->flat), *results, true, 3);
    expect_passed(result);
  }
  EXPECT_EQ(driver.cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamDestroy(stream), CUDA_SUCCESS);
}

// ---- Debug reports ----

TEST_F(CascadeTest, ABadLengthOfAnyLevelIsReported) {
  KernelSpec spec = make_spec(kBF16, 64, 16, 4);
  spec.debug = true;
  const CascadeKernel kernel = prepare_cascade(make_cascade(spec));
  const CascadeCase c = cascade_cases().front();
  CascadeCheckOptions options = c.options();
  options.batch.prefixes = {{{6, 100}}};
  const CascadeBatch batch = make(kernel.spec(), options);
  Result<DeviceCascade> device = DeviceCascade::upload(session(), kernel, batch);
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();
  for (size_t level = 0; level < 2; ++level) {
    CascadeBatch wrong = batch;
    wrong.levels[level].seq_lens[0] = -5;
    ASSERT_TRUE(device->set_lengths(wrong).is_ok());
    launch(kernel, *device);
    const Status status = kernel.read_debug_report(device->workspace().data(), nullptr);
    EXPECT_EQ(status.code(), StatusCode::kDeviceCheckFailed) << level;
    EXPECT_NE(status.message().find("in one of the levels: sequence 0: seq_len is -5"),
              std::string::npos)
        << status.message();
    EXPECT_TRUE(kernel.read_debug_report(device->workspace().data(), nullptr).is_ok());
  }
}

}  // namespace
}  // namespace pagejit
