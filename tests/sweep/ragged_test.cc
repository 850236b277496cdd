// Ragged queries against the float64 reference: all numbers of query tokens in one launch, and each
// mask and score change, alone and together.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;

// Query and KV tokens of sequences as one launch mixes them: a decode step, a sequence without
// queries, a prompt without a cache, a chunk behind a cache, more queries than keys, an empty
// cache.
const std::vector<int> kMixedQueries = {1, 0, 37, 20, 3, 5, 2};
const std::vector<int> kMixedLens = {130, 9, 37, 101, 258, 3, 0};

struct RaggedCase {
  std::string name;
  KernelSpec spec;
  int window_left = -1;
  int window_right = -1;
  int num_splits = 0;
  LogitRegime logits = LogitRegime::kNormal;
};

KernelSpec ragged(QueryLengths queries, Causality causality, DataType type, int head_size,
                  int block_size, int group_size) {
  KernelSpec spec = make_spec(type, head_size, block_size, group_size);
  spec.queries = queries;
  spec.causality = causality;
  return spec;
}

class RaggedTest : public DeviceTest, public testing::WithParamInterface<RaggedCase> {};

TEST_P(RaggedTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const RaggedCase& c = GetParam();
  CheckOptions options;
  options.batch.num_kv_heads = 2;
  options.batch.seq_lens = kMixedLens;
  if (c.spec.queries != QueryLengths::kOne) {
    options.batch.query_lens = kMixedQueries;
    options.batch.unused_queries = 3;
  }
  options.batch.window_left = c.window_left;
  options.batch.window_right = c.window_right;
  options.batch.logits = c.logits;
  options.batch.layout = CacheLayout::kPadded;
  options.num_splits = c.num_splits;
  expect_passes(c.spec, options);
}

std::vector<RaggedCase> make_cases() {
  std::vector<RaggedCase> cases;
  const auto add = [&](std::string name, KernelSpec spec) -> RaggedCase& {
    cases.push_back({std::move(name), spec});
    return cases.back();
  };
  for (const QueryLengths queries :
       {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    const std::string kind = std::string(name_of(queries)) + "_";
    for (const Causality causality :
         {Causality::kNone, Causality::kCausal, Causality::kPerSequence}) {
      const std::string mask = causality == Causality::kNone     ? "full"
                               : causality == Causality::kCausal ? "causal"
                                                                 : "flagged";
      add(kind + mask, ragged(queries, causality, kBF16, 64, 16, 4));
      add(kind + mask + "_split", ragged(queries, causality, kF16, 128, 5, 1)).num_splits = 3;
    }
    const KernelSpec causal = ragged(queries, Causality::kCausal, kBF16, 64, 16, 4);
    KernelSpec spec = causal;
    spec.window = true;
    add(kind + "window", spec).window_left = 20;
    RaggedCase& both = add(kind + "window_both", spec);
    both.spec.causality = Causality::kNone;
    both.window_left = 7;
    both.window_right = 3;
    both.num_splits = 2;
    RaggedCase& right = add(kind + "window_right", spec);
    right.spec.causality = Causality::kPerSequence;
    right.window_right = 0;
    spec = causal;
    spec.soft_cap = true;
    add(kind + "cap", spec);
    add(kind + "cap_high", spec).logits = LogitRegime::kMixed;
    spec = causal;
    spec.alibi = true;
    add(kind + "alibi", spec).num_splits = 4;
    spec = causal;
    spec.sinks = true;
    add(kind + "sinks", spec).num_splits = 3;
    spec.soft_cap = spec.alibi = spec.window = true;
    spec.head_size = 72;
    RaggedCase& all = add(kind + "everything", spec);
    all.window_left = 33;
    all.num_splits = 2;
    add(kind + "wide_group", ragged(queries, Causality::kCausal, kF16, 96, 24, 71));
    add(kind + "large_head", ragged(queries, Causality::kCausal, kBF16, 256, 16, 7));
    add(kind + "small_head", ragged(queries, Causality::kCausal, kBF16, 16, 1, 3));
    add(kind + "low", ragged(queries, Causality::kCausal, kBF16, 128, 16, 8)).logits =
        LogitRegime::kLow;
    spec = causal;
    spec.kv_table = KvTable::kCsr;
    add(kind + "csr", spec);
    add(kind + "csr_split", spec).num_splits = 3;
    spec.kv_table = KvTable::kContiguous;
    spec.block_size = 1;
    add(kind + "contiguous", spec).num_splits = 2;
    spec.causality = Causality::kNone;
    spec.head_size = 80;
    add(kind + "contiguous_full", spec);
    spec = causal;
    spec.chunked = true;
    add(kind + "chunked", spec).num_splits = 2;
    spec.causality = Causality::kPerSequence;
    add(kind + "chunked_flagged", spec);
    spec.causality = Causality::kNone;
    spec.soft_cap = spec.sinks = true;
    add(kind + "chunked_full", spec);
    spec = causal;
    spec.custom_mask = true;
    add(kind + "mask", spec);
    spec.causality = Causality::kNone;
    add(kind + "mask_full", spec).num_splits = 3;
    spec.window = spec.alibi = spec.sinks = true;
    add(kind + "mask_everything", spec).window_left = 40;
    KernelSpec debug = causal;
    debug.debug = true;
    add(kind + "debug", debug).num_splits = 2;
  }
  // One query token each, with what a decode step may have.
  KernelSpec one = make_spec(kBF16, 128, 16, 4);
  one.window = true;
  add("one_window", one).window_left = 50;
  one.window = false;
  one.soft_cap = true;
  add("one_cap", one).num_splits = 2;
  one.soft_cap = false;
  one.alibi = true;
  add("one_alibi", one).num_splits = 3;
  one.alibi = false;
  one.sinks = true;
  add("one_sinks", one).num_splits = 2;
  one.sinks = false;
  one.custom_mask = true;
  add("one_mask", one).num_splits = 2;
  one.custom_mask = false;
  one.chunked = true;
  add("one_chunked", one).num_splits = 2;
  one.chunked = false;
  one.kv_table = KvTable::kCsr;
  add("one_csr", one).num_splits = 3;
  one.debug = true;
  add("one_csr_debug", one);
  one.kv_table = KvTable::kContiguous;
  one.block_size = 1;
  add("one_contiguous", one).num_splits = 3;
  return cases;
}

class RaggedLaunchTest : public DeviceTest {
 protected:
  // A mixed batch of a spec, with a workspace for as many splits as are asked for.
  void set_up(const KernelSpec& spec, int num_splits) {
    kernel_ = prepare(spec);
    ASSERT_TRUE(kernel_);
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = 2;
    options.seq_lens = kMixedLens;
    options.query_lens = kMixedQueries;
    batch_ = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch_, true);
    ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
    device_batch_ = std::make_unique<DeviceBatch>(std::move(device_batch).value());
    args_ = device_batch_->args();
    args_.num_splits = num_splits;
    Result<Workspace> workspace =
        Workspace::create(session(), kernel_, kernel_.workspace_bytes(args_));
    ASSERT_TRUE(workspace.is_ok()) << workspace.status().to_string();
    workspace_ = std::move(workspace).value();
    workspace_.put_into(args_);
  }

  Kernel kernel_;
  AttentionBatch batch_;
  std::unique_ptr<DeviceBatch> device_batch_;
  AttentionArgs args_;
  Workspace workspace_;
};

// The grid is fixed by bounds, so one captured launch serves other numbers of query tokens too.
class ChangingQueriesTest : public RaggedLaunchTest,
                            public testing::WithParamInterface<QueryLengths> {};

TEST_P(ChangingQueriesTest, OneCapturedGraphServesThem) {
  set_up(ragged(GetParam(), Causality::kCausal, kBF16, 64, 16, 4), 3);
  CapturedLaunch captured(session().driver(), kernel_, args_);
  const std::vector<std::vector<int>> replays = {kMixedQueries,          {1, 1, 1, 1, 1, 1, 1},
                                                 {0, 0, 0, 0, 0, 0, 0},  {68, 0, 0, 0, 0, 0, 0},
                                                 {0, 0, 0, 0, 0, 0, 68}, {9, 9, 9, 9, 9, 9, 14}};
  for (const std::vector<int>& query_lens : replays) {
    // The same q and caches; other query tokens belong to other sequences.
    AttentionBatch now = batch_;
    now.options.query_lens = query_lens;
    now.query_start_loc = {0};
    for (int length : query_lens) {
      now.query_start_loc.push_back(now.query_start_loc.back() + length);
    }
    now.num_queries = now.query_start_loc.back();
    ASSERT_LE(now.num_queries, args_.num_query_tokens);
    ASSERT_TRUE(device_batch_->set_query_start_loc(now.query_start_loc).is_ok());
    ASSERT_TRUE(device_batch_->reset_results().is_ok());
    ASSERT_TRUE(captured.replay()) << report();
    const Result<AttentionResults> results = device_batch_->download();
    ASSERT_TRUE(results.is_ok());
    if (now.num_queries == 0) {
      EXPECT_EQ(results->out, batch_.out);
      continue;
    }
    const CheckReport result = compare_results(now, compute_reference(now), *results, true, 3);
    expect_passed(result);
  }
}

INSTANTIATE_TEST_SUITE_P(Queries, ChangingQueriesTest,
                         testing::Values(QueryLengths::kFew, QueryLengths::kMany,
                                         QueryLengths::kShared),
                         [](const testing::TestParamInfo<QueryLengths>& test) {
                           return std::string(name_of(test.param));
                         });

class InconsistentTablesTest : public RaggedLaunchTest {
 protected:
  void set_up_debug(QueryLengths queries, KvTable kv_table) {
    KernelSpec spec = ragged(queries, Causality::kCausal, kBF16, 64, 16, 4);
    spec.kv_table = kv_table;
    if (kv_table == KvTable::kContiguous) spec.block_size = 1;
    spec.debug = true;
    set_up(spec, 2);
  }

  void expect_report(const Status& changed, const std::string& part) {
    ASSERT_TRUE(changed.is_ok()) << changed.to_string();
    const Status launched = kernel_.launch(args_, nullptr);
    ASSERT_TRUE(launched.is_ok()) << launched.to_string() << report();
    const Status status = kernel_.read_debug_report(workspace_.buffer().data(), nullptr);
    EXPECT_EQ(status.code(), StatusCode::kDeviceCheckFailed) << status.to_string();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
};

TEST_F(InconsistentTablesTest, QueryStartLocIsReported) {
  for (QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    set_up_debug(queries, KvTable::kBlocks);
    const std::vector<int32_t> good = batch_.query_start_loc;
    // Entry 3 falls behind entry 2; the last one lies beyond the query tokens.
    for (const auto& [entry, bad] :
         {std::pair<size_t, int32_t>{3, good[2] - 1}, std::pair<size_t, int32_t>{7, good[7] + 1}}) {
      std::vector<int32_t> wrong = good;
      wrong[entry] = bad;
      expect_report(device_batch_->set_query_start_loc(wrong),
                    "query_start_loc[" + std::to_string(entry) + "] is " + std::to_string(bad));
    }
  }
}

TEST_F(InconsistentTablesTest, CsrIsReported) {
  for (QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    set_up_debug(queries, KvTable::kCsr);
    std::vector<int32_t> indptr = batch_.kv_indptr;
    indptr[4] = indptr[3] - 1;
    expect_report(device_batch_->set_kv_indptr(indptr),
                  "sequence 3: kv_indptr[4] is " + std::to_string(indptr[4]));
    ASSERT_TRUE(device_batch_->set_kv_indptr(batch_.kv_indptr).is_ok());
    for (int32_t bad : {0, -5, 17, 0x7fffffff}) {
      std::vector<int32_t> lens = batch_.kv_last_block_len;
      lens[3] = bad;
      expect_report(device_batch_->set_kv_last_block_len(lens),
                    "sequence 3: kv_last_block_len is " + std::to_string(bad));
    }
  }
}

TEST_F(InconsistentTablesTest, KvStartLocIsReported) {
  set_up_debug(QueryLengths::kMany, KvTable::kContiguous);
  std::vector<int32_t> starts = batch_.kv_start_loc;
  starts[3] = starts[2] - 1;
  expect_report(device_batch_->set_kv_start_loc(starts),
                "sequence 2: kv_start_loc[3] is " + std::to_string(starts[3]));
  starts = batch_.kv_start_loc;
  starts[0] = -1;
  expect_report(device_batch_->set_kv_start_loc(starts), "sequence 0: kv_start_loc[0] is -1");
}

INSTANTIATE_TEST_SUITE_P(Cases, RaggedTest, testing::ValuesIn(make_cases()),
                         [](const testing::TestParamInfo<RaggedCase>& test) {
                           return test.param.name;
                         });

}  // namespace
}  // namespace pagejit
