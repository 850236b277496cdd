// Cascades against the float64 reference over concatenated KV, against the flat kernel, and vLLM's
// cases; what they read from global memory; captured graphs; debug reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"
#include "tools/check/cascade_check.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;

using Groups = std::vector<CascadeGroup>;

CascadeSpec make_cascade(const KernelSpec& attention) { return {.attention = attention}; }

KernelSpec ragged(QueryLengths queries, DataType type, int head_size, int block_size,
                  int group_size) {
  KernelSpec spec = make_spec(type, head_size, block_size, group_size);
  spec.queries = queries;
  spec.causality = Causality::kCausal;
  return spec;
}

KernelSpec fp8(int head_size, int group_size) {
  KernelSpec spec = make_spec(kE4m3, head_size, 16, group_size);
  spec.q_dtype = spec.out_dtype = kBF16;
  return spec;
}

struct CascadeCase {
  std::string name;
  KernelSpec spec;
  std::vector<Groups> prefixes;
  std::vector<int> suffixes;
  std::vector<int> queries;  // empty: one each
  int num_splits = 0;
  int unused_queries = 0;
  CacheLayout layout = CacheLayout::kPadded;
  float soft_cap = 0;

  CascadeCheckOptions options() const {
    CascadeCheckOptions options;
    options.batch.prefixes = prefixes;
    options.batch.batch.num_kv_heads = 2;
    options.batch.batch.seq_lens = suffixes;
    options.batch.batch.query_lens = queries;
    options.batch.batch.unused_queries = unused_queries;
    options.batch.batch.layout = layout;
    options.batch.batch.per_head_scales = true;
    options.batch.batch.soft_cap = soft_cap;
    options.num_splits = num_splits;
    return options;
  }
};

class CascadeTest : public DeviceTest {
 protected:
  CascadeKernel prepare_cascade(const CascadeSpec& spec) {
    Result<CascadeKernel> kernel = engine().prepare(spec);
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
    return kernel ? *kernel : CascadeKernel();
  }

  CascadeBatch make(const CascadeSpec& spec, const CascadeCheckOptions& options) {
    CascadeBatchOptions batch_options = options.batch;
    batch_options.spec = spec;
    Result<CascadeBatch> batch = make_cascade_batch(batch_options);
    EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
    return batch ? std::move(batch).value() : CascadeBatch();
  }

  // Launches, waits and downloads.
  AttentionResults launch(const CascadeKernel& kernel, DeviceCascade& device) {
    Status status = device.flat().reset_results();
    if (status) status = kernel.launch(device.args(), nullptr);
    if (status) status = session().synchronize();
    EXPECT_TRUE(status.is_ok()) << status.to_string() << report();
    Result<AttentionResults> results = device.flat().download();
    EXPECT_TRUE(results.is_ok()) << results.status().to_string();
    return results ? std::move(results).value() : AttentionResults();
  }

  void expect_right(Engine& on, const CascadeCase& c) {
    const Result<CheckReport> result =
        run_cascade_check(on, session(), make_cascade(c.spec), c.options());
    ASSERT_TRUE(result.is_ok()) << c.name << ": " << result.status().to_string()
                                << result.status().detail() << report();
    EXPECT_TRUE(result->passed) << c.name << ": " << result->sentence;
  }
};

// ---- Equality with the flat reference ----

std::vector<CascadeCase> make_cases() {
  std::vector<CascadeCase> cases;
  const auto add = [&](std::string name, const KernelSpec& spec) -> CascadeCase& {
    CascadeCase& c = cases.emplace_back();
    c.name = std::move(name);
    c.spec = spec;
    c.prefixes = {{{3, 150}, {1, 0}, {2, 33}}};
    c.suffixes = {1, 70, 16, 40, 0, 15};
    return c;
  };
  // Each number of levels. One level is the flat computation, in two launches.
  for (const DataType type : {kF16, kBF16}) {
    const std::string kind = type == kF16 ? "f16_" : "bf16_";
    for (const int num_splits : {0, 1, 3}) {
      const std::string splits = "_s" + std::to_string(num_splits);
      CascadeCase& one = add(kind + "one_level" + splits, make_spec(type, 64, 16, 4));
      one.prefixes.clear();
      one.num_splits = num_splits;
      CascadeCase& two = add(kind + "two_levels" + splits, make_spec(type, 128, 16, 4));
      two.num_splits = num_splits;
      CascadeCase& three = add(kind + "three_levels" + splits, make_spec(type, 64, 16, 2));
      // Groups of no sequence too.
      three.prefixes = {{{6, 300}}, {{1, 9}, {3, 0}, {0, 50}, {2, 65}}};
      three.num_splits = num_splits;
    }
  }
  // Lengths at the borders of blocks, on every level.
  for (const int block_size : {1, 5, 16}) {
    for (const int length : {0, 1, block_size - 1, block_size, block_size + 1}) {
      CascadeCase& c = add("b" + std::to_string(block_size) + "_length" + std::to_string(length) +
                               "_" + std::to_string(cases.size()),
                           make_spec(kBF16, 64, block_size, 4));
      c.prefixes = {{{5, length}}, {{2, block_size}, {2, length}, {1, 3}}};
      c.suffixes = {length, 0, 1, block_size + 1, length};
    }
  }
  // Nothing at all: results are 0, their lse -inf.
  CascadeCase& empty = add("no_keys", make_spec(kBF16, 64, 16, 4));
  empty.prefixes = {{{6, 0}}};
  empty.suffixes = {0, 0, 0, 0, 0, 0};
  // Ragged queries, none among them, with rows behind them that must stay as they are.
  for (const QueryLengths queries :
       {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    const std::string kind = std::string(name_of(queries)) + "_";
    const auto add_ragged = [&](const std::string& name, const KernelSpec& spec) -> CascadeCase& {
      CascadeCase& c = add(kind + name, spec);
      c.prefixes = {{{6, 100}}, {{2, 0}, {3, 47}, {1, 16}}};
      c.suffixes = {5, 64, 20, 0, 41, 3};
      c.queries = {5, 1, 17, 0, 40, 2};
      c.unused_queries = 3;
      return c;
    };
    add_ragged("causal", ragged(queries, kBF16, 128, 16, 4));
    add_ragged("causal_split", ragged(queries, kF16, 64, 16, 3)).num_splits = 2;
    KernelSpec spec = ragged(queries, kBF16, 64, 16, 5);
    spec.causality = Causality::kNone;
    add_ragged("full", spec).queries = {7, 1, 30, 2, 50, 0};
    spec.causality = Causality::kPerSequence;
    add_ragged("flags", spec);
    spec = ragged(queries, kBF16, 64, 16, 4);
    spec.soft_cap = spec.sinks = true;
    add_ragged("cap_sinks", spec);
    spec = ragged(queries, kBF16, 64, 16, 4);
    spec.custom_mask = true;
    add_ragged("mask", spec);
    spec.causality = Causality::kNone;
    add_ragged("mask_full", spec).num_splits = 2;
    spec = ragged(queries, kBF16, 64, 16, 4);
    spec.kv_table = KvTable::kCsr;
    add_ragged("csr", spec);
    spec.kv_table = KvTable::kContiguous;
    spec.block_size = 1;
    add_ragged("contiguous", spec);
    spec = fp8(64, 4);
    spec.queries = queries;
    spec.causality = Causality::kCausal;
    add_ragged("fp8", spec);
    spec.debug = true;
    add_ragged("fp8_debug", spec).num_splits = 2;
  }
  // Decode: score changes, types, layouts, groups.
  KernelSpec spec = make_spec(kBF16, 64, 16, 4);
  spec.soft_cap = true;
  add("cap", spec);
  spec.soft_cap = false;
  spec.sinks = true;
  add("sinks", spec).num_splits = 2;
  CascadeCase& only_sinks = add("sinks_no_keys", spec);
  only_sinks.prefixes = {{{6, 0}}};
  only_sinks.suffixes = {0, 0, 0, 0, 0, 0};
  spec.sinks = false;
  spec.custom_mask = true;
  add("mask", spec);
  spec.custom_mask = false;
  spec.debug = true;
  add("debug", spec);
  spec.debug = false;
  spec.out_dtype = DataType::kFloat32;
  add("f32_out", spec);
  spec.q_dtype = DataType::kFloat32;
  add("f32_q", spec);
  spec.kv_dtype = DataType::kFloat32;
  add("f32_kv", spec);
  add("fp8", fp8(128, 4)).num_splits = 2;
  KernelSpec other = fp8(64, 1);
  other.kv_dtype = DataType::kFloat8E5m2;
  other.out_dtype = kF16;
  other.q_dtype = kF16;
  add("e5m2", other);
  other = fp8(64, 8);
  other.q_dtype = kE4m3;
  add("fp8_q", other);
  other = fp8(64, 4);
  other.kv_layout = KvLayout::kVllm;
  add("fp8_vllm", other).layout = CacheLayout::kNhd;
  other = make_spec(kF16, 64, 16, 2);
  other.kv_layout = KvLayout::kVllm;
  add("vllm", other).layout = CacheLayout::kNhd;
  add("d512", make_spec(kBF16, 512, 16, 9));
  add("d256_g71", make_spec(kF16, 256, 16, 71));
  add("d72_g7", make_spec(kBF16, 72, 5, 7));
  // Rows of many tiles, each split.
  CascadeCase& tall = add("many_tiles", make_spec(kBF16, 64, 16, 16));
  tall.prefixes = {{{20, 700}, {4, 300}}};
  tall.suffixes = std::vector<int>(24, 20);
  tall.num_splits = 3;
  return cases;
}

class CascadeCaseTest : public CascadeTest, public testing::WithParamInterface<CascadeCase> {};

TEST_P(CascadeCaseTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  expect_right(engine(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cases, CascadeCaseTest, testing::ValuesIn(make_cases()),
                         [](const testing::TestParamInfo<CascadeCase>& test) {
                           return test.param.name;
                         });

// ---- vLLM's cascade cases ----

// {query tokens, KV tokens} of each sequence, a common prefix; the pairs of heads, head sizes and
// soft caps of its test. Without --all the numbers of tokens are cut to an eighth and each of the
// second batch's four sequences comes three times instead of a hundred times.
std::vector<CascadeCase> vllm_cases() {
  using Lengths = std::vector<std::pair<int, int>>;
  const Lengths first = {{129, 871}, {18, 280}, {37, 988}, {1023, 2304}, {1, 257}};
  const Lengths second = {{1, 1023}, {1, 879}, {1, 778}, {1, 1777}};
  constexpr int kHeads[][2] = {{4, 4}, {8, 2}, {16, 2}};
  const int divisor = run_all() ? 1 : 8;
  const int repeats = run_all() ? 100 : 3;
  std::vector<CascadeCase> cases;
  for (const auto& heads : kHeads) {
    for (const int head_size : {128, 192, 256}) {
      for (const float soft_cap : {0.0f, 50.0f}) {
        for (const bool is_first : {true, false}) {
          // A row of each factor is enough beside the other cases.
          if (!run_all() && (head_size == 192) != (heads[0] == 8)) continue;
          CascadeCase& c = cases.emplace_back();
          c.spec = ragged(is_first ? QueryLengths::kMany : QueryLengths::kFew,
                          soft_cap == 0 ? kBF16 : kF16, head_size, 16, heads[0] / heads[1]);
          c.spec.soft_cap = soft_cap != 0;
          c.soft_cap = soft_cap;
          const int prefix = is_first ? 256 : 512;
          for (int i = 0; i < (is_first ? 1 : repeats); ++i) {
            for (const auto& [queries, tokens] : is_first ? first : second) {
              c.queries.push_back((queries + divisor - 1) / divisor);
              c.suffixes.push_back((tokens - prefix + divisor - 1) / divisor);
            }
          }
          c.prefixes = {{{static_cast<int>(c.queries.size()), prefix / divisor}}};
          c.name = std::string(is_first ? "prefill" : "decode") + "_h" + std::to_string(heads[0]) +
                   "_" + std::to_string(heads[1]) + "_d" + std::to_string(head_size) + "_cap" +
                   std::to_string(static_cast<int>(soft_cap));
        }
      }
    }
  }
  return cases;
}

class VllmCascadeTest : public CascadeTest, public testing::WithParamInterface<CascadeCase> {};

TEST_P(VllmCascadeTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  expect_right(engine(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cases, VllmCascadeTest, testing::ValuesIn(vllm_cases()),
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
    EXPECT_TRUE(report.passed) << report.sentence;
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
  CascadeCheckOptions options = make_cases().front().options();
  options.with_lse = false;
  const Result<CheckReport> result =
      run_cascade_check(engine(), session(), make_cascade(make_spec(kBF16, 64, 16, 4)), options);
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_TRUE(result->passed) << result->sentence;
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
    EXPECT_TRUE(result.passed) << result.sentence;
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
  const CascadeCase c = make_cases().front();
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

// ---- What only the emulator shows ----

class CascadeOnEmulatorTest : public CascadeTest {
 protected:
  void SetUp() override {
    CascadeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (device().emulator == nullptr) GTEST_SKIP() << "looks into the emulator; this is a GPU";
  }
  const EmulatorControls& emulator() { return *device().emulator; }

  uint64_t bytes_read(const CascadeCase& c) {
    emulator().reset_counters();
    CascadeCheckOptions options = c.options();
    options.batch.batch.num_kv_heads = 1;
    options.batch.batch.padded_rows = false;
    const CascadeKernel kernel = prepare_cascade(make_cascade(c.spec));
    const CascadeBatch batch = make(kernel.spec(), options);
    Result<DeviceCascade> device = DeviceCascade::upload(session(), kernel, batch, c.num_splits);
    EXPECT_TRUE(device.is_ok()) << device.status().to_string();
    emulator().reset_counters();
    launch(kernel, *device);
    EXPECT_EQ(emulator().counters().launches, batch.levels.size() + 1);
    return emulator().counters().global_bytes_read;
  }
};

// Every order of threads and CTAs gives the same bits.
TEST_F(CascadeOnEmulatorTest, EveryScheduleGivesTheSameBits) {
  const CascadeKernel kernel =
      prepare_cascade(make_cascade(ragged(QueryLengths::kFew, kBF16, 64, 16, 4)));
  CascadeCheckOptions options;
  options.batch.prefixes = {{{4, 260}}, {{1, 33}, {3, 100}}};
  options.batch.batch.num_kv_heads = 2;
  options.batch.batch.seq_lens = {30, 40, 90, 0};
  options.batch.batch.query_lens = {2, 40, 1, 0};
  const CascadeBatch batch = make(kernel.spec(), options);
  Result<DeviceCascade> device = DeviceCascade::upload(session(), kernel, batch, 3);
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();
  const AttentionResults first = launch(kernel, *device);
  const CheckReport report =
      compare_results(batch.flat, compute_reference(batch.flat), first, true, 3);
  EXPECT_TRUE(report.passed) << report.sentence;
  for (const PagejitEmulatorOrder order :
       {kPagejitEmulatorFifo, kPagejitEmulatorLifo, kPagejitEmulatorRandom}) {
    for (const PagejitEmulatorCompletion completion :
         {kPagejitEmulatorLate, kPagejitEmulatorEarly, kPagejitEmulatorRandomCompletion}) {
      PagejitEmulatorOptions schedule = emulator().options();
      schedule.order = order;
      schedule.completion = completion;
      schedule.resident = order == kPagejitEmulatorRandom ? 5 : 1;
      emulator().configure(schedule);
      const AttentionResults again = launch(kernel, *device);
      EXPECT_EQ(again.out, first.out) << order << ", " << completion;
      for (size_t i = 0; i < first.lse.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(again.lse[i]), std::bit_cast<uint32_t>(first.lse[i]));
      }
    }
  }
}

TEST_F(CascadeOnEmulatorTest, TheCheckedBuildFindsNothingAndDidLook) {
  for (const CascadeCase& c : make_cases()) {
    if (c.name != "bf16_three_levels_s3" && c.name != "few_cap_sinks" && c.name != "fp8") continue;
    emulator().reset_counters();
    expect_right(checked_engine(), c);
    EXPECT_GT(emulator().counters().checked_shared_accesses, 0u) << c.name;
    EXPECT_GT(emulator().counters().checked_global_accesses, 0u) << c.name;
  }
}

// A prefix of 8,192 tokens before 64 suffixes of 512. The flat kernel reads each sequence's 8,704
// tokens, so 64 times what it reads for one of them. The prefix is read once for each tile of 128
// rows: 64 sequences of up to 2 query heads per KV head are one tile.
TEST_F(CascadeOnEmulatorTest, ASharedPrefixIsReadOncePerTileOfRows) {
  constexpr int kSeqs = 64;
  constexpr int kPrefix = 8192;
  constexpr int kSuffix = 512;
  constexpr int kRowBytes = 2 * 128 * 2;  // K and V of a token
  for (const int group_size : {1, 2, 4, 8}) {
    const KernelSpec spec = make_spec(kBF16, 128, 16, group_size);
    CascadeCase c;
    c.spec = spec;
    c.prefixes = {{{kSeqs, kPrefix}}};
    c.suffixes = std::vector<int>(kSeqs, kSuffix);
    c.num_splits = 1;
    c.layout = CacheLayout::kNhd;
    const double cascade = static_cast<double>(bytes_read(c));

    CascadeCase one = c;  // as a flat sequence
    one.prefixes.clear();
    one.suffixes = {kPrefix + kSuffix};
    CheckOptions flat;
    flat.batch.seq_lens = one.suffixes;
    flat.num_splits = 1;
    emulator().reset_counters();
    const Result<CheckReport> checked = run_check(engine(), session(), spec, flat);
    ASSERT_TRUE(checked.is_ok() && checked->passed);
    const double flat_bytes = static_cast<double>(emulator().counters().global_bytes_read) * kSeqs;

    const int tiles = (kSeqs * group_size + 127) / 128;
    const double kv_ratio =
        static_cast<double>(kSeqs * (kPrefix + kSuffix)) / (tiles * kPrefix + kSeqs * kSuffix);
    const double ratio = flat_bytes / cascade;
    RecordProperty("ratio_g" + std::to_string(group_size), std::to_string(ratio));
    std::printf("group size %d: %.1f MB instead of %.1f MB, %.2f times fewer (of K and V %.2f)\n",
                group_size, cascade * 1e-6, flat_bytes * 1e-6, ratio, kv_ratio);
    // All bytes, q, block ids, and the levels' results among them.
    if (group_size <= 2) {
      EXPECT_GE(ratio, 12) << group_size;
    }
    EXPECT_GE(ratio, 0.93 * kv_ratio) << group_size;
    EXPECT_GE(cascade, (tiles * kPrefix + kSeqs * kSuffix) * double{kRowBytes})
        << "then the emulator did not count";
  }
}

}  // namespace
}  // namespace pagejit
