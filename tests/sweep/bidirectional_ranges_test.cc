// Bidirectional ranges against the float64 reference: beside each mask and score change, at the
// borders of tiles, empty, overlapping and beyond the sequence.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/error_summary.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF16 = DataType::kFloat16;

struct RangesCase {
  std::string name;
  KernelSpec spec;
  int window_left = -1;
  int window_right = -1;
  bool within_window = false;
  int num_splits = 0;
  std::vector<std::vector<PositionRange>> ranges = {};
};

KernelSpec with_ranges(QueryLengths queries, Causality causality, DataType type, int head_size,
                       int group_size) {
  KernelSpec spec = make_ragged_spec(queries, causality, type, head_size, group_size);
  spec.bidirectional_ranges = true;
  return spec;
}

class BidirectionalRangesTest : public DeviceTest,
                                public testing::WithParamInterface<RangesCase> {};

TEST_P(BidirectionalRangesTest, ShowWholeRanges) {
  const RangesCase& c = GetParam();
  CheckOptions options;
  options.batch.num_kv_heads = 2;
  // A decode step, no query, a prompt, chunks behind a cache, more queries than keys, no key.
  options.batch.seq_lens = {130, 9, 137, 301, 258, 3, 0};
  if (c.spec.queries != QueryLengths::kOne) {
    options.batch.query_lens = {1, 0, 137, 70, 3, 5, 2};
    options.batch.unused_queries = 2;
  }
  options.batch.window_left = c.window_left;
  options.batch.window_right = c.window_right;
  options.batch.chunk_size = 50;
  options.batch.ranges_within_window = c.within_window;
  options.batch.bidirectional_ranges = c.ranges;
  options.batch.layout = CacheLayout::kPadded;
  options.num_splits = c.num_splits;
  expect_passes(c.spec, options);
}

// Sequence by sequence of the batch above: where tiles of 16 to 128 tokens and rows meet, one over
// all, one of a single token, some within each other, and such as hold no query token.
const std::vector<std::vector<PositionRange>> kBorders = {
    {{0, 130}},
    {{0, 9}},
    {{0, 16}, {16, 32}, {31, 33}, {33, 64}, {63, 65}, {100, 128}, {127, 128}},
    {{0, 240}, {231, 233}, {235, 290}, {240, 250}, {300, 301}, {300, 400}},
    {{250, 256}, {256, 258}, {40, 41}},
    {{-2, 1}, {-5, -1}, {2, 3}},
    {{0, 5}, {-2, 0}},
};

std::vector<RangesCase> make_cases() {
  std::vector<RangesCase> cases;
  const auto add = [&](std::string name, KernelSpec spec) -> RangesCase& {
    cases.push_back({std::move(name), spec});
    return cases.back();
  };
  for (const QueryLengths queries :
       {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    const std::string kind = std::string(name_of(queries)) + "_";
    const KernelSpec causal = with_ranges(queries, Causality::kCausal, kBF16, 64, 4);
    add(kind + "causal", causal);
    add(kind + "causal_borders", causal).ranges = kBorders;
    add(kind + "causal_none", causal).ranges = std::vector<std::vector<PositionRange>>(7);
    add(kind + "causal_split", with_ranges(queries, Causality::kCausal, kF16, 128, 1)).num_splits =
        3;
    add(kind + "full", with_ranges(queries, Causality::kNone, kBF16, 64, 4));
    add(kind + "flagged", with_ranges(queries, Causality::kPerSequence, kBF16, 80, 3)).ranges =
        kBorders;
    KernelSpec window = causal;
    window.window = true;
    for (const bool within : {false, true}) {
      const std::string how = within ? "_within" : "";
      RangesCase& left = add(kind + "window" + how, window);
      left.window_left = 20;
      left.within_window = within;
      left.num_splits = 2;
      RangesCase& both = add(kind + "window_both" + how, window);
      both.window_left = 11;
      both.window_right = 6;
      both.within_window = within;
      both.ranges = kBorders;
      RangesCase& full = add(kind + "window_full" + how, window);
      full.spec.causality = Causality::kNone;
      full.window_left = 9;
      full.window_right = 3;
      full.within_window = within;
      RangesCase& chunked = add(kind + "chunked" + how, causal);
      chunked.spec.chunked = true;
      chunked.within_window = within;
      chunked.ranges = kBorders;
    }
    // Within a window that is none: as without it.
    add(kind + "within_nothing", causal).within_window = true;
    KernelSpec spec = causal;
    spec.soft_cap = spec.alibi = spec.sinks = true;
    add(kind + "scores", spec).num_splits = 2;
    spec = causal;
    spec.custom_mask = true;
    add(kind + "mask", spec);
    spec.qq_bias = true;
    add(kind + "mask_bias", spec).ranges = kBorders;
    spec = window;
    spec.kv_table = KvTable::kCsr;
    spec.debug = true;
    add(kind + "csr_debug", spec).window_left = 40;
    spec = causal;
    spec.kv_table = KvTable::kContiguous;
    spec.block_size = 1;
    add(kind + "contiguous", spec).num_splits = 2;
    spec = window;
    spec.kv_dtype = DataType::kFloat8E4m3;
    spec.kv_layout = KvLayout::kVllm;
    RangesCase& vllm = add(kind + "fp8_vllm", spec);
    vllm.window_left = 13;
    vllm.num_splits = 2;
    if (queries == QueryLengths::kShared) continue;
    spec = window;
    spec.batch_invariant = true;
    add(kind + "invariant", spec).window_left = 30;
  }
  KernelSpec one = with_ranges(QueryLengths::kOne, Causality::kNone, kBF16, 128, 4);
  add("one", one);
  one.window = true;
  RangesCase& window = add("one_window", one);
  window.window_left = 5;
  window.num_splits = 2;
  RangesCase& within = add("one_window_within", one);
  within.window_left = 5;
  within.within_window = true;
  RangesCase& borders = add("one_window_borders", one);
  borders.window_left = 0;
  borders.ranges = {{{0, 130}}, {{8, 9}}, {{136, 300}}, {{0, 300}}, {{200, 258}}, {{0, 2}}, {}};
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, BidirectionalRangesTest, testing::ValuesIn(make_cases()),
                         [](const testing::TestParamInfo<RangesCase>& test) {
                           return test.param.name;
                         });

class RangesLaunchTest : public DeviceTest {};
class RangesOnEmulatorTest : public EmulatorTest {};

// No ranges in the launch: none in memory either.
TEST_F(RangesLaunchTest, NoRangesNeedNoArray) {
  BatchOptions options;
  options.spec = with_ranges(QueryLengths::kFew, Causality::kCausal, kBF16, 64, 4);
  options.seq_lens = {70, 40};
  options.query_lens = {5, 40};
  options.bidirectional_ranges = {{}, {}};
  const AttentionBatch batch = make_batch(options);
  Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  AttentionArgs args = device_batch->args();
  args.bidirectional_ranges = nullptr;
  args.num_splits = 1;
  const CheckReport result = launch_and_compare(prepare(options.spec), *device_batch, args, batch,
                                                compute_reference(batch));
  expect_passed(result);
}

// A stride of 0: one list for all sequences.
TEST_F(RangesLaunchTest, OneListMayServeAllSequences) {
  BatchOptions options;
  options.spec = with_ranges(QueryLengths::kMany, Causality::kCausal, kBF16, 64, 4);
  options.seq_lens = {70, 40, 100};
  options.query_lens = {5, 40, 60};
  options.bidirectional_ranges = {{{10, 69}, {3, 20}}, {{10, 69}, {3, 20}}, {{10, 69}, {3, 20}}};
  const AttentionBatch batch = make_batch(options);
  Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
  ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
  AttentionArgs args = device_batch->args();
  args.bidirectional_ranges_stride = 0;
  args.num_splits = 1;
  const CheckReport result = launch_and_compare(prepare(options.spec), *device_batch, args, batch,
                                                compute_reference(batch));
  expect_passed(result);
}

// What no query token sees is not read: a range widens the tiles of its own rows alone.
TEST_F(RangesOnEmulatorTest, WhatNoRowSeesIsNotRead) {
  BatchOptions options;
  options.spec = with_ranges(QueryLengths::kFew, Causality::kCausal, kBF16, 64, 1);
  options.spec.window = true;
  options.window_left = 15;
  options.seq_lens = {2000};
  options.query_lens = {8};
  const auto bytes_read = [&](const PositionRange& range) {
    options.bidirectional_ranges = {{range}};
    const AttentionBatch batch = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok());
    AttentionArgs args = device_batch->args();
    args.num_splits = 1;
    const Kernel kernel = prepare(options.spec);
    device().emulator->reset_counters();
    const CheckReport result =
        launch_and_compare(kernel, *device_batch, args, batch, compute_reference(batch));
    expect_passed(result);
    return device().emulator->counters().global_bytes_read;
  };
  const auto without = bytes_read({100, 1900});
  EXPECT_LT(without, bytes_read({1500, 1995}) / 4);
  EXPECT_LT(bytes_read({1500, 1995}), bytes_read({0, 1993}) / 2);
}

}  // namespace
}  // namespace pagejit
