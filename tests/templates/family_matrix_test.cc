// NVRTC compiles kernels of every family beside attention without spills, stack frames or warnings
// of ptxas, for targets without and with asynchronous copies, with fp8 conversions, and of each
// later generation. Needs NVRTC, no GPU.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "generator/arch.h"
#include "generator/families.h"
#include "generator/renderer.h"
#include "tests/templates/compile_checks.h"

namespace pagejit {
namespace {

constexpr DataType kWideTypes[] = {DataType::kFloat16, DataType::kBFloat16, DataType::kFloat32};

class FamilyMatrixTest : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override { require_target(GetParam()); }

  static void expect_clean(const AnySpec& spec) {
    SCOPED_TRACE(text_of(spec) + " for " + GetParam().to_string());
    const auto config = plan_any(spec, GetParam());
    ASSERT_TRUE(config) << config.status().to_string();
    compile_clean(render(*config));
  }
};

TEST_P(FamilyMatrixTest, MergeStatesCompilesWithoutSpills) {
  for (const DataType in : kWideTypes) {
    for (const DataType out : kWideTypes) {
      expect_clean(MergeStatesSpec{in, out, 128, in != out});
    }
  }
  for (const int head_size : {1, 33, 72, 576}) {
    expect_clean(MergeStatesSpec{DataType::kBFloat16, DataType::kBFloat16, head_size});
  }
}

TEST_P(FamilyMatrixTest, CacheWriteCompilesWithoutSpills) {
  for (const DataType type : kWideTypes) {
    expect_clean(CacheWriteSpec{.dtype = type, .kv_dtype = type});
    expect_clean(CacheWriteSpec{.dtype = type,
                                .kv_dtype = DataType::kInt8,
                                .scale = KvScale::kTokenHead,
                                .rope = RopeStyle::kInterleaved,
                                .rotary_dim = 64});
    expect_clean(CacheWriteSpec{.dtype = type,
                                .kv_dtype = DataType::kInt4,
                                .scale = KvScale::kTokenHead,
                                .head_size = 192,
                                .head_size_v = 128,
                                .rope = RopeStyle::kNeox,
                                .rotary_dim = 64});
  }
  for (const DataType kv : {DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
    expect_clean(CacheWriteSpec{.kv_dtype = kv,
                                .scale = KvScale::kHead,
                                .layout = KvLayout::kVllm,
                                .rope = RopeStyle::kNeox,
                                .rotary_dim = 128,
                                .debug = true});
    expect_clean(CacheWriteSpec{.dtype = DataType::kFloat16,
                                .kv_dtype = kv,
                                .scale = KvScale::kTensor,
                                .head_size = 33,
                                .block_size = 24});
  }
}

TEST_P(FamilyMatrixTest, CacheOperationsCompileWithoutSpills) {
  for (const int alignment : {1, 16}) expect_clean(CopyBlocksSpec{alignment, alignment == 1});
  for (const DataType wide : kWideTypes) {
    expect_clean(GatherCacheSpec{.kv_dtype = wide, .out_dtype = wide});
    expect_clean(GatherCacheSpec{.kv_dtype = DataType::kFloat8E4m3,
                                 .out_dtype = wide,
                                 .layout = KvLayout::kDsMla,
                                 .head_size = 576});
    expect_clean(GatherCacheSpec{.kv_dtype = DataType::kInt4,
                                 .out_dtype = wide,
                                 .scale = KvScale::kTokenHead,
                                 .head_size = 192,
                                 .head_size_v = 128});
    for (const DataType small : {DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
      expect_clean(ConvertFloat8Spec{wide, small});
      expect_clean(ConvertFloat8Spec{small, wide});
      expect_clean(GatherCacheSpec{.kv_dtype = small,
                                   .out_dtype = wide,
                                   .scale = KvScale::kTokenHead,
                                   .layout = KvLayout::kVllm,
                                   .debug = true});
    }
  }
}

TEST_P(FamilyMatrixTest, WritesOfLatentCachesCompileWithoutSpills) {
  for (const DataType type : kWideTypes) {
    expect_clean(MlaCacheWriteSpec{.dtype = type});
    expect_clean(
        MlaCacheWriteSpec{.dtype = type, .format = MlaFormat::kE4m3, .rope = RopeStyle::kNeox});
    if (type == DataType::kFloat32) continue;
    expect_clean(MlaCacheWriteSpec{.dtype = type, .format = MlaFormat::kDsMla, .debug = true});
    expect_clean(MlaCacheWriteSpec{
        .dtype = type, .format = MlaFormat::kDsMla, .rope = RopeStyle::kInterleaved});
  }
  expect_clean(MlaCacheWriteSpec{.format = MlaFormat::kE4m3, .grouped = true, .debug = true});
  expect_clean(MlaCacheWriteSpec{
      .format = MlaFormat::kE4m3, .kv_lora_rank = 33, .qk_rope_head_dim = 0, .block_size = 24});
}

TEST_P(FamilyMatrixTest, IndexKeysCompileWithoutSpills) {
  for (const DataType type : kWideTypes) {
    expect_clean(IndexKeyWriteSpec{.dtype = type, .power_of_two_scale = type != kWideTypes[0]});
  }
  expect_clean(IndexKeyWriteSpec{.head_size = 512, .block_size = 1, .debug = true});
  expect_clean(IndexKeyGatherSpec{});
  expect_clean(IndexKeyGatherSpec{.head_size = 512, .block_size = 1, .debug = true});
}

TEST_P(FamilyMatrixTest, TopKCompilesWithoutSpills) {
  for (const int alignment : {4, 8, 16}) expect_clean(TopKSpec{alignment, alignment == 4});
}

TEST_P(FamilyMatrixTest, IndexLogitsCompileWithoutSpills) {
  for (const int num_heads : {32, 64}) {
    for (const int block_size : {0, 64}) {
      expect_clean(IndexLogitsSpec{.num_heads = num_heads, .block_size = block_size});
    }
  }
  for (const int head_size : {32, 96, 256}) {
    expect_clean(IndexLogitsSpec{.head_size = head_size, .block_size = 1, .clean = true});
    expect_clean(IndexLogitsSpec{.num_heads = 8, .head_size = head_size, .debug = true});
  }
  expect_clean(IndexLogitsSpec{.block_size = 16, .clean = true, .debug = true});
}

INSTANTIATE_TEST_SUITE_P(Targets, FamilyMatrixTest,
                         ::testing::Values(*parse_target("sm_75"), *parse_target("sm_80"),
                                           *parse_target("sm_89"), *parse_target("sm_90"),
                                           *parse_target("sm_100"), *parse_target("sm_120")),
                         [](const auto& test) { return test.param.to_string(); });

}  // namespace
}  // namespace pagejit
