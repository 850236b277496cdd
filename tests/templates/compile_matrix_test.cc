// NVRTC compiles every cell of (head size x data type x target), and every shape of real models for
// every target that this NVRTC knows, without spills, stack frames or warnings of ptxas. Needs
// NVRTC, no GPU.
#include <gtest/gtest.h>

#include "tests/templates/attention_matrix.h"
#include "tests/templates/device_function_cases.h"

namespace pagejit {
namespace {

class CompileMatrixTest : public AttentionMatrixTest {};

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

INSTANTIATE_TEST_SUITE_P(Targets, CompileMatrixTest, ::testing::ValuesIn(known_targets()),
                         name_of_target);

// The cells of the suite's head sizes, with odd groups and block sizes mixed in.
class HeadSizeMatrixTest : public AttentionMatrixTest {};

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

INSTANTIATE_TEST_SUITE_P(Targets, HeadSizeMatrixTest,
                         ::testing::Values(*parse_target("sm_80"), *parse_target("sm_86"),
                                           *parse_target("sm_89"), *parse_target("sm_90a"),
                                           *parse_target("sm_100a"), *parse_target("sm_120a")),
                         name_of_target);

class DeviceFunctionMatrixTest : public AttentionMatrixTest {};

INSTANTIATE_TEST_SUITE_P(Targets, DeviceFunctionMatrixTest,
                         ::testing::Values(*parse_target("sm_75"), *parse_target("sm_80"),
                                           *parse_target("sm_89"), *parse_target("sm_90a"),
                                           *parse_target("sm_100a"), *parse_target("sm_120a")),
                         name_of_target);

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
