#include "tools/models/layer_support.h"

#include <gtest/gtest.h>

#include "tests/tools/models/model_files.h"

namespace pagejit::models {
namespace {

ModelShape shape_of(const char* model) { return *load_model_config(data_path(model)); }

std::string missing(const char* model, size_t kind = 0) {
  const ModelShape shape = shape_of(model);
  const Result<KernelSpec> spec = spec_of_kind(shape, shape.kinds[kind], 16);
  EXPECT_EQ(spec.status().code(), StatusCode::kUnsupported) << model;
  return spec.status().message();
}

TEST(LayerSupportTest, CausalLayersGiveASpec) {
  const ModelShape shape = shape_of("falcon-7b");
  const Result<KernelSpec> spec = spec_of_kind(shape, shape.kinds[0], 32);
  ASSERT_TRUE(spec.is_ok()) << spec.status().to_string();
  EXPECT_EQ(canonical_text(*spec),
            "decode q=bf16 kv=bf16 out=bf16 head_size=64 block_size=32 group_size=71");
}

TEST(LayerSupportTest, CustomScaleIsALaunchArgument) {
  const ModelShape shape = shape_of("granite-3.1-8b");
  EXPECT_TRUE(spec_of_kind(shape, shape.kinds[0], 16).is_ok());
}

TEST(LayerSupportTest, SentencesNameTheLayersAndAllThatIsMissing) {
  EXPECT_EQ(missing("mistral-7b-v0.1"),
            "all 32 layers: not supported yet: sliding window of 4096 keys");
  EXPECT_EQ(
      missing("gemma-2-9b"),
      "layers 0, 2, 4, ..., 40 (21 of 42): not supported yet: sliding window of 4096 keys and "
      "soft cap 50");
  EXPECT_EQ(missing("gemma-2-9b", 1),
            "layers 1, 3, 5, ..., 41 (21 of 42): not supported yet: soft cap 50");
  EXPECT_EQ(missing("gpt-oss-20b", 1),
            "layers 1, 3, 5, ..., 23 (12 of 24): not supported yet: attention sinks");
  EXPECT_EQ(missing("mpt-7b"), "all 32 layers: not supported yet: ALiBi of maximum bias 8");
  EXPECT_EQ(missing("deepseek-v3"),
            "all 61 layers: not supported yet: latent attention (MLA) of 512 + 64");
  EXPECT_EQ(missing("deepseek-v3.2"),
            "all 61 layers: not supported yet: latent attention (MLA) of 512 + 64 over the best "
            "2048 tokens");
  EXPECT_EQ(missing("llama-4-scout"),
            "layers 0, 1, 2, ..., 46 (36 of 48): not supported yet: chunks of 8192 keys");
  EXPECT_EQ(missing("qwen3-next-80b"),
            "layers 0, 1, 2, ..., 46 (36 of 48): not supported yet: linear_attention layers");
}

TEST(LayerSupportTest, FullLayersOfAMixedModelAreServed) {
  for (const char* model :
       {"gemma-3-270m", "gemma-3-27b", "llama-4-scout", "exaone-4.0-32b", "qwen3-next-80b"}) {
    const ModelShape shape = shape_of(model);
    EXPECT_TRUE(spec_of_kind(shape, shape.kinds[1], 16).is_ok()) << model;
  }
}

TEST(LayerSupportTest, HeadSizeBeyondTheKernelsIsOneKindsLimit) {
  EXPECT_NE(missing("gemma-4-26b", 1).find("head_size 512"), std::string::npos);
}

TEST(LayerSupportTest, BadBlockSizeIsTheCallersMistake) {
  const ModelShape shape = shape_of("llama-3.1-8b");
  EXPECT_EQ(spec_of_kind(shape, shape.kinds[0], 0).status().code(), StatusCode::kInvalidArgument);
}

TEST(DescribeTest, ModelForPeople) {
  EXPECT_EQ(
      describe_model(shape_of("gemma-3-270m")),
      "gemma3_text, 18 layers, bf16\n"
      "  layers 0, 1, 2, ..., 16 (15 of 18): 4/1 heads of 256, sliding window of 512 keys, scale "
      "0.0625\n"
      "  layers 5, 11, 17 (3 of 18): 4/1 heads of 256, causal, scale 0.0625\n");
}

}  // namespace
}  // namespace pagejit::models
