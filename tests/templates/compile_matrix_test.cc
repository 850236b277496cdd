// NVRTC compiles every cell of (head size x data type x target), and every shape of real models for
// every target that this NVRTC knows, without spills, stack frames or warnings of ptxas. Needs
// NVRTC, no GPU.
#include <gtest/gtest.h>

#include <memory>

#include "generator/arch.h"
#include "generator/planner.h"
#include "generator/renderer.h"
#include "tests/templates/device_function_cases.h"
#include "tests/templates/nvrtc_target.h"

namespace pagejit {
namespace {

std::string test_name(const Target& target) { return target.to_string(); }

class CompileMatrixTest : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override { require_target(GetParam()); }

  // `allowed_bytes`: what may be spilled, and what the stack may have.
  void expect_clean(const KernelSpec& spec, int allowed_bytes = 0) {
    SCOPED_TRACE(canonical_text(spec) + " for " + GetParam().to_string());
    const auto config = plan(spec, GetParam());
    ASSERT_TRUE(config) << config.status().to_string();
    const auto source = render(*config);
    ASSERT_TRUE(source) << source.status().to_string();
    const auto compiled = nvrtc()->compile(*source);
    ASSERT_TRUE(compiled) << compiled.status().to_string() << "\n" << compiled.status().detail();
    const CompiledImage& image = *compiled;
    EXPECT_GT(image.image.size(), 1000u);
    EXPECT_GT(image.report.registers, 0) << "the log was not read:\n" << image.log;
    EXPECT_LE(image.report.spill_store_bytes, allowed_bytes);
    EXPECT_LE(image.report.spill_load_bytes, allowed_bytes);
    EXPECT_LE(image.report.stack_bytes, allowed_bytes);
    EXPECT_EQ(image.report.static_shared_bytes, 0) << "shared memory is one dynamic struct";
    EXPECT_TRUE(image.report.warnings.empty()) << image.report.warnings.front();
    // The bytes in flight that the plan counts on need its occupancy. Registers go by warp, in
    // units of 256, and lie in four parts among which the warps are dealt.
    const int registers_per_warp = (image.report.registers * 32 + 255) / 256 * 256;
    const int warps_per_sm = Arch::kRegistersPerSm / 4 / registers_per_warp * 4;
    EXPECT_GE(warps_per_sm / config->num_warps(), config->attention.min_ctas_per_sm)
        << image.report.registers << " registers";
  }
};

struct Shape {
  int head_size;
  int group_size;
};

// Heads per KV head and head sizes of the models that this version serves or will serve with the
// same tiles.
constexpr Shape kModelShapes[] = {{128, 4}, {128, 8}, {128, 16}, {64, 4},  {64, 3},
                                  {128, 7}, {128, 1}, {256, 2},  {128, 2}, {256, 4},
                                  {64, 8},  {80, 1},  {96, 1},   {64, 71}, {64, 1}};

TEST_P(CompileMatrixTest, ShapesOfRealModelsCompileWithoutSpills) {
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    // The data type changes two instructions; one shape with f16 is enough beside the matrix below.
    for (const Shape& shape : kModelShapes) {
      const bool has_bf16 = GetParam().sm >= kFirstAsyncCopySm;
      const bool is_one_for_all = shape.head_size == 128 && shape.group_size == 4;
      if (type == DataType::kFloat16 ? has_bf16 && !is_one_for_all : !has_bf16) continue;
      expect_clean({.q_dtype = type,
                    .kv_dtype = type,
                    .out_dtype = type,
                    .head_size = shape.head_size,
                    .group_size = shape.group_size});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CompileMatrixTest, ::testing::ValuesIn(known_targets(true)),
                         [](const auto& test) { return test_name(test.param); });

// The cells of the suite's head sizes, with odd groups and block sizes mixed in.
class HeadSizeMatrixTest : public CompileMatrixTest {};
// What is switched on beside: one target for each size of shared memory.
class FeatureMatrixTest : public CompileMatrixTest {};

TEST_P(HeadSizeMatrixTest, EveryHeadSizeAndTypeCompilesWithoutSpills) {
  constexpr int kGroups[] = {1, 5, 7, 16, 71};
  constexpr int kBlockSizes[] = {1, 16, 24, 528};
  int cell = 0;
  for (const int head_size : {16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256}) {
    for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
      expect_clean({.q_dtype = type,
                    .kv_dtype = type,
                    .out_dtype = type,
                    .head_size = head_size,
                    .block_size = kBlockSizes[cell % 4],
                    .group_size = kGroups[cell % 5]});
      ++cell;
    }
  }
  EXPECT_EQ(cell, 24);
}

// Each legal combination of q and KV, with each type of the result, decode and prefill in turn;
// head sizes that are copied 16 bytes at a time and 8.
TEST_P(HeadSizeMatrixTest, EveryCombinationOfTypesCompilesWithoutSpills) {
  constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBFloat16, DataType::kFloat32,
                                 DataType::kFloat8E4m3, DataType::kFloat8E5m2};
  constexpr Shape kShapes[] = {{128, 4}, {72, 7}, {64, 16}, {256, 2}, {120, 1}};
  int cell = 0;
  for (const DataType kv : kTypes) {
    for (const DataType q : kTypes) {
      const Shape& shape = kShapes[cell % 5];
      KernelSpec spec{.q_dtype = q,
                      .kv_dtype = kv,
                      .out_dtype = kTypes[cell % 3],
                      .head_size = shape.head_size,
                      .group_size = shape.group_size};
      if (!validate(spec) || q == kv) continue;  // equal types are above
      if (cell % 2 == 1) {
        spec.queries = cell % 4 == 1 ? QueryLengths::kMany : QueryLengths::kFew;
        spec.causality = Causality::kCausal;
      }
      expect_clean(spec);
      ++cell;
    }
  }
  EXPECT_EQ(cell, 9);
}

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

INSTANTIATE_TEST_SUITE_P(Targets, HeadSizeMatrixTest,
                         ::testing::Values(*parse_target("sm_80"), *parse_target("sm_86"),
                                           *parse_target("sm_89"), *parse_target("sm_90a"),
                                           *parse_target("sm_100a"), *parse_target("sm_120a")),
                         [](const auto& test) { return test_name(test.param); });

INSTANTIATE_TEST_SUITE_P(Targets, FeatureMatrixTest,
                         ::testing::Values(*parse_target("sm_80"), *parse_target("sm_90a"),
                                           *parse_target("sm_120a")),
                         [](const auto& test) { return test_name(test.param); });

// sm_75: what it serves of the above.
class TuringMatrixTest : public CompileMatrixTest {
 protected:
  static KernelSpec make_spec(int head_size, int group_size) {
    constexpr DataType kF16 = DataType::kFloat16;
    return {.q_dtype = kF16,
            .kv_dtype = kF16,
            .out_dtype = kF16,
            .head_size = head_size,
            .group_size = group_size};
  }
};

TEST_P(TuringMatrixTest, EveryHeadSizeCompilesWithoutSpills) {
  constexpr int kGroups[] = {1, 5, 7, 16, 64};
  int cell = 0;
  for (const int head_size : {8, 16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256}) {
    expect_clean(make_spec(head_size, kGroups[cell++ % 5]));
  }
  for (const int head_size : {64, 128, 256}) expect_clean(make_spec(head_size, 4));
}

TEST_P(TuringMatrixTest, RaggedKernelsCompileWithoutSpills) {
  for (const QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    for (const Shape& shape : {Shape{16, 3}, {64, 8}, {72, 5}, {128, 4}, {256, 2}}) {
      KernelSpec spec = make_spec(shape.head_size, shape.group_size);
      spec.queries = queries;
      spec.causality = Causality::kCausal;
      expect_clean(spec);
      if (shape.head_size != 72 && shape.head_size != 128) continue;
      spec.causality = Causality::kPerSequence;
      spec.window = spec.custom_mask = spec.soft_cap = spec.alibi = spec.sinks = true;
      expect_clean(spec);
    }
  }
}

TEST_P(TuringMatrixTest, OtherTypesAndLayoutsCompileWithoutSpills) {
  int cell = 0;
  for (const DataType q : {DataType::kFloat16, DataType::kBFloat16, DataType::kFloat32}) {
    for (const DataType kv : {DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
      KernelSpec spec = make_spec(128, 4);
      spec.q_dtype = q;
      spec.kv_dtype = kv;
      spec.out_dtype = cell++ % 2 == 0 ? DataType::kBFloat16 : DataType::kFloat32;
      expect_clean(spec);
    }
  }
  for (const int block_size : {8, 32}) {
    KernelSpec spec = make_spec(128, 4);
    spec.block_size = block_size;
    spec.kv_layout = KvLayout::kVllm;
    expect_clean(spec);
    spec.kv_dtype = DataType::kFloat8E4m3;
    expect_clean(spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TuringMatrixTest, ::testing::Values(*parse_target("sm_75")),
                         [](const auto& test) { return test_name(test.param); });

class DeviceFunctionMatrixTest : public CompileMatrixTest {};

INSTANTIATE_TEST_SUITE_P(Targets, DeviceFunctionMatrixTest,
                         ::testing::Values(*parse_target("sm_75"), *parse_target("sm_80"),
                                           *parse_target("sm_89"), *parse_target("sm_90a"),
                                           *parse_target("sm_100a"), *parse_target("sm_120a")),
                         [](const auto& test) { return test_name(test.param); });

// What runs on a GPU only must at least compile without one.
TEST_P(DeviceFunctionMatrixTest, EveryDeviceFunctionCompiles) {
  for (const testing::DeviceFunctionCase& test : testing::device_function_cases()) {
    if (GetParam().sm < test.least_sm) continue;
    KernelSource source;
    source.kernel_name = "conformance";
    source.target = GetParam();
    const Result<std::string> text =
        with_device_functions(GetParam(), testing::kernel_text(test), test.pdl);
    ASSERT_TRUE(text) << text.status().to_string();
    source.text = *text;
    const auto compiled = nvrtc()->compile(source);
    EXPECT_TRUE(compiled) << test.name << ": " << compiled.status().detail();
  }
}

}  // namespace
}  // namespace pagejit
