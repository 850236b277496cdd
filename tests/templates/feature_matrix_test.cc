// NVRTC compiles attention kernels with what may be switched on beside the plain ones: data types,
// layouts, masks, changes of scores, without spills: each for one of three targets in turn, one for
// each size of shared memory; with --all for every one. Needs NVRTC, no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/sweep/sweep_main.h"
#include "tests/templates/attention_matrix.h"

namespace pagejit {
namespace {

constexpr const char* kTargets[] = {"sm_80", "sm_90a", "sm_120a"};

class FeatureMatrixTest : public AttentionMatrixTest {
 protected:
  // Counts the test's kernels: the next target's turn comes with the next one.
  void expect_clean(const KernelSpec& spec, int allowed_bytes = 0) {
    const auto target = std::find(std::begin(kTargets), std::end(kTargets), GetParam().to_string());
    const bool is_its_turn =
        num_kernels_++ % std::size(kTargets) == static_cast<size_t>(target - std::begin(kTargets));
    if (run_all() || is_its_turn) AttentionMatrixTest::expect_clean(spec, allowed_bytes);
  }

 private:
  size_t num_kernels_ = 0;
};

TEST_P(FeatureMatrixTest, LayoutsAndExtremeHeadSizesCompileWithoutSpills) {
  constexpr auto kE4m3 = DataType::kFloat8E4m3;
  for (const int block_size : {8, 32}) {
    KernelSpec spec{.head_size = 128, .block_size = block_size, .group_size = 4};
    spec.kv_layout = KvLayout::kVllm;
    expect_clean(spec);
    spec.kv_dtype = kE4m3;
    expect_clean(spec);
  }
  expect_clean({.head_size = 8, .group_size = 4});
  expect_clean({.kv_dtype = kE4m3, .head_size = 8, .group_size = 1});
  for (const int group_size : {1, 8, 16}) {
    expect_clean({.head_size = 512, .group_size = group_size});
    expect_clean({.queries = QueryLengths::kMany,
                  .head_size = 512,
                  .group_size = group_size,
                  .causality = Causality::kCausal});
  }
}

// A scale for each token, each alignment, results of 8 bits, V's own head size.
TEST_P(FeatureMatrixTest, TokenScalesAndValueHeadSizesCompileWithoutSpills) {
  constexpr auto kInt8 = DataType::kInt8;
  constexpr auto kE4m3 = DataType::kFloat8E4m3;
  for (const QueryLengths queries : {QueryLengths::kOne, QueryLengths::kMany}) {
    const auto causality = queries == QueryLengths::kOne ? Causality::kNone : Causality::kCausal;
    for (const int alignment : {16, 4}) {
      expect_clean({.queries = queries,
                    .kv_dtype = alignment == 16 ? kInt8 : kE4m3,
                    .out_dtype = kE4m3,
                    .head_size = 128,
                    .group_size = 4,
                    .causality = causality,
                    .token_scales = true,
                    .kv_alignment = alignment});
    }
    expect_clean({.queries = queries,
                  .head_size = 192,
                  .head_size_v = 128,
                  .group_size = 1,
                  .causality = causality});
    for (const DataType kv : {DataType::kBFloat16, kE4m3}) {
      expect_clean({.queries = queries,
                    .kv_dtype = kv,
                    .head_size = 576,
                    .head_size_v = 512,
                    .group_size = 16,
                    .causality = causality});
    }
  }
}

// Rows that hold K and V, with the heads of a GPU among 8 and of all.
TEST_P(FeatureMatrixTest, LatentKernelsCompileWithoutSpills) {
  for (const DataType kv : {DataType::kBFloat16, DataType::kFloat8E4m3}) {
    for (const int num_heads : {1, 16, 128}) {
      KernelSpec spec{.kv_dtype = kv,
                      .head_size = 576,
                      .head_size_v = 512,
                      .block_size = 64,
                      .group_size = num_heads,
                      .latent = true};
      expect_clean(spec);
      spec.queries = QueryLengths::kFew;
      spec.causality = Causality::kCausal;
      spec.batch_invariant = num_heads == 128;
      expect_clean(spec);
      if (kv != DataType::kFloat8E4m3) continue;
      spec.kv_layout = KvLayout::kDsMla;
      expect_clean(spec);
      spec.queries = QueryLengths::kOne;
      spec.causality = Causality::kNone;
      spec.batch_invariant = false;
      spec.kv_table = KvTable::kPositions;
      expect_clean(spec);
    }
  }
  expect_clean({.queries = QueryLengths::kMany,
                .head_size = 320,
                .head_size_v = 256,
                .group_size = 128,
                .causality = Causality::kCausal,
                .latent = true,
                .window = true,
                .soft_cap = true,
                .sinks = true,
                .debug = true});
}

// K and V of f32, whose operands have three terms. Where q has 192 elements, its terms and the
// accumulators take 120 registers, and ptxas spills one on sm_80; as it does for few query tokens,
// head size 128 and group size 8 on sm_90a.
TEST_P(FeatureMatrixTest, CachesOfF32CompileWithoutSpills) {
  constexpr DataType kF32 = DataType::kFloat32;
  constexpr Shape kShapes[] = {{8, 4}, {64, 8}, {72, 5}, {128, 1}, {128, 8}, {192, 1}, {256, 2}};
  for (const Shape& shape : kShapes) {
    KernelSpec spec{.q_dtype = kF32,
                    .kv_dtype = kF32,
                    .out_dtype = kF32,
                    .head_size = shape.head_size,
                    .group_size = shape.group_size};
    expect_clean(spec);
    if (shape.group_size == 8) {
      KernelSpec vllm = spec;
      vllm.kv_layout = KvLayout::kVllm;
      vllm.alibi = vllm.block_sparse = true;
      expect_clean(vllm);
    }
    spec.queries = QueryLengths::kShared;
    if (shape.head_size >= 128) expect_clean(spec);
    spec.causality = Causality::kCausal;
    spec.queries = QueryLengths::kFew;
    if (shape.head_size >= 128) expect_clean(spec, 8);
    spec.queries = QueryLengths::kMany;
    expect_clean(spec, shape.head_size == 192 ? 8 : 0);
  }
}

// int4: the alignments, the pads, the largest heads, all that ragged kernels may have.
TEST_P(FeatureMatrixTest, KernelsOfInt4CompileWithoutSpills) {
  constexpr Shape kShapes[] = {{40, 5}, {64, 8}, {72, 1}, {128, 4}, {128, 16}, {256, 2}, {512, 4}};
  for (const QueryLengths queries :
       {QueryLengths::kOne, QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    int cell = 0;
    for (const Shape& shape : kShapes) {
      KernelSpec spec{.queries = queries,
                      .kv_dtype = DataType::kInt4,
                      .head_size = shape.head_size,
                      .group_size = shape.group_size,
                      .token_scales = true,
                      .kv_alignment = 16 >> cell++ % 3};
      if (queries != QueryLengths::kOne) spec.causality = Causality::kCausal;
      expect_clean(spec);
      if (shape.head_size != 128 || queries == QueryLengths::kOne) continue;
      spec.causality = Causality::kPerSequence;
      spec.window = spec.custom_mask = spec.soft_cap = spec.alibi = spec.sinks = true;
      expect_clean(spec);
    }
    KernelSpec spec{.queries = queries,
                    .kv_dtype = DataType::kInt4,
                    .head_size = 192,
                    .head_size_v = 128,
                    .token_scales = true};
    expect_clean(spec);
    spec.head_size = 576;
    spec.head_size_v = 512;
    spec.group_size = 16;
    expect_clean(spec);
  }
}

// The prefixes of a cascade: f32 results, the largest head, 8-bit KV.
TEST_P(FeatureMatrixTest, KernelsOfSharedPrefixesCompileWithoutSpills) {
  constexpr Shape kShapes[] = {{64, 8}, {80, 1}, {128, 1}, {128, 4}, {128, 8}, {256, 2}, {512, 4}};
  for (const DataType kv : {DataType::kBFloat16, DataType::kFloat8E4m3}) {
    for (const Shape& shape : kShapes) {
      for (const bool soft_cap : {false, true}) {
        expect_clean({.queries = QueryLengths::kShared,
                      .kv_dtype = kv,
                      .out_dtype = DataType::kFloat32,
                      .head_size = shape.head_size,
                      .group_size = shape.group_size,
                      .soft_cap = soft_cap});
      }
    }
  }
}

// Ragged queries, plain and with everything on.
TEST_P(FeatureMatrixTest, RaggedKernelsCompileWithoutSpills) {
  constexpr Shape kShapes[] = {{16, 3}, {64, 8}, {72, 5}, {128, 1}, {128, 4}, {256, 2}};
  for (const QueryLengths queries :
       {QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    for (const Shape& shape : kShapes) {
      KernelSpec spec{.queries = queries,
                      .head_size = shape.head_size,
                      .group_size = shape.group_size,
                      .causality = Causality::kCausal};
      expect_clean(spec);
      if (shape.head_size > 128) continue;
      spec.causality = Causality::kPerSequence;
      spec.window = spec.custom_mask = spec.soft_cap = spec.alibi = spec.sinks = true;
      expect_clean(spec);
    }
  }
}

// Each of what decides on single scores alone, and all with everything else.
TEST_P(FeatureMatrixTest, MasksRangesAndBiasesCompileWithoutSpills) {
  for (const QueryLengths queries :
       {QueryLengths::kOne, QueryLengths::kFew, QueryLengths::kMany, QueryLengths::kShared}) {
    KernelSpec plain{.queries = queries, .head_size = 128, .group_size = 4};
    if (queries == QueryLengths::kOne) {
      plain.window = true;
    } else {
      plain.causality = Causality::kCausal;
    }
    for (const auto field :
         {&KernelSpec::custom_mask, &KernelSpec::bidirectional_ranges, &KernelSpec::qq_bias}) {
      KernelSpec spec = plain;
      spec.*field = true;
      expect_clean(spec);
    }
    KernelSpec all = plain;
    all.window = all.custom_mask = all.bidirectional_ranges = all.qq_bias = true;
    expect_clean(all);
    all.soft_cap = all.alibi = all.sinks = true;
    expect_clean(all);
  }
}

TEST_P(FeatureMatrixTest, BlockSparseKernelsCompileWithoutSpills) {
  constexpr Shape kShapes[] = {{112, 8}, {256, 1}};
  for (const Shape& shape : kShapes) {
    for (const QueryLengths queries :
         {QueryLengths::kOne, QueryLengths::kFew, QueryLengths::kMany}) {
      KernelSpec spec{
          .queries = queries, .head_size = shape.head_size, .group_size = shape.group_size};
      if (queries != QueryLengths::kOne) spec.causality = Causality::kCausal;
      spec.block_sparse = true;
      expect_clean(spec);
      if (queries != QueryLengths::kOne) continue;
      spec.kv_layout = KvLayout::kVllm;
      spec.alibi = true;
      expect_clean(spec);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FeatureMatrixTest,
                         ::testing::Values(*parse_target(kTargets[0]), *parse_target(kTargets[1]),
                                           *parse_target(kTargets[2])),
                         name_of_target);

}  // namespace
}  // namespace pagejit
