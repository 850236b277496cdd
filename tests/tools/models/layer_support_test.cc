#include "tools/models/layer_support.h"

#include <gtest/gtest.h>

#include "tests/tools/models/model_files.h"

namespace pagejit::models {
namespace {

ModelShape shape_of(const char* model) { return *load_model_config(data_path(model)); }

std::string missing(const char* model, size_t kind = 0, QueryLengths queries = QueryLengths::kOne) {
  const ModelShape shape = shape_of(model);
  const Result<KernelSpec> spec = spec_of_kind(shape, shape.kinds[kind], 16, queries);
  EXPECT_EQ(spec.status().code(), StatusCode::kUnsupported) << model;
  return spec.status().message();
}

TEST(LayerSupportTest, CausalLayersGiveASpec) {
  const ModelShape shape = shape_of("falcon-7b");
  const Result<KernelSpec> spec = spec_of_kind(shape, shape.kinds[0], 32, QueryLengths::kOne);
  ASSERT_TRUE(spec.is_ok()) << spec.status().to_string();
  EXPECT_EQ(canonical_text(*spec),
            "decode q=bf16 kv=bf16 out=bf16 head_size=64 block_size=32 group_size=71");
}

TEST(LayerSupportTest, CustomScaleIsALaunchArgument) {
  const ModelShape shape = shape_of("granite-3.1-8b");
  EXPECT_TRUE(spec_of_kind(shape, shape.kinds[0], 16, QueryLengths::kOne).is_ok());
}

TEST(LayerSupportTest, MasksAndScoreChangesAreInTheSpec) {
  const auto text = [](const char* model, size_t kind, QueryLengths queries) {
    const ModelShape shape = shape_of(model);
    const Result<KernelSpec> spec = spec_of_kind(shape, shape.kinds[kind], 16, queries);
    EXPECT_TRUE(spec.is_ok()) << spec.status().to_string();
    const std::string all = canonical_text(*spec);
    return all.substr(0, all.find(' ')) + all.substr(all.find(" group_size="));
  };
  EXPECT_EQ(text("mistral-7b-v0.1", 0, QueryLengths::kOne), "decode group_size=4 window=1");
  EXPECT_EQ(text("mistral-7b-v0.1", 0, QueryLengths::kMany), "many group_size=4 causal=1 window=1");
  EXPECT_EQ(text("gemma-2-9b", 0, QueryLengths::kFew),
            "few group_size=2 causal=1 window=1 soft_cap=1");
  EXPECT_EQ(text("gemma-2-9b", 1, QueryLengths::kOne), "decode group_size=2 soft_cap=1");
  EXPECT_EQ(text("gpt-oss-20b", 0, QueryLengths::kOne), "decode group_size=8 window=1 sinks=1");
  EXPECT_EQ(text("llama-4-scout", 0, QueryLengths::kMany), "many group_size=5 causal=1 chunked=1");
  EXPECT_EQ(text("mpt-7b", 0, QueryLengths::kOne), "decode group_size=1 alibi=1");
}

TEST(LayerSupportTest, LatentAttentionIsOverTheLatentRowsOrOverAllHeads) {
  const auto text = [](const char* model, QueryLengths queries) {
    const ModelShape shape = shape_of(model);
    const Result<KernelSpec> spec = spec_of_kind(shape, shape.kinds[0], 64, queries);
    EXPECT_TRUE(spec.is_ok()) << spec.status().to_string();
    return canonical_text(*spec) + " x " +
           std::to_string(kv_heads_of_kind(shape.kinds[0], queries));
  };
  EXPECT_EQ(text("deepseek-v2-lite", QueryLengths::kOne),
            "decode q=bf16 kv=bf16 out=bf16 head_size=576 head_size_v=512 block_size=64 "
            "group_size=16 latent=1 x 1");
  EXPECT_EQ(text("deepseek-v3", QueryLengths::kFew),
            "few q=bf16 kv=bf16 out=bf16 head_size=576 head_size_v=512 block_size=64 "
            "group_size=128 causal=1 latent=1 x 1");
  EXPECT_EQ(text("deepseek-v3", QueryLengths::kMany),
            "many q=bf16 kv=bf16 out=bf16 head_size=192 head_size_v=128 block_size=1 "
            "group_size=1 causal=1 table=contiguous x 128");
  for (const QueryLengths queries : {QueryLengths::kOne, QueryLengths::kMany}) {
    EXPECT_EQ(text("deepseek-v3.2", queries),
              "decode q=bf16 kv=bf16 out=bf16 head_size=576 head_size_v=512 block_size=64 "
              "group_size=128 table=positions latent=1 x 1");
  }
}

TEST(LayerSupportTest, SentencesNameTheLayersAndAllThatIsMissing) {
  EXPECT_EQ(missing("qwen3-next-80b"),
            "layers 0, 1, 2, ..., 46 (36 of 48): not supported yet: linear_attention layers");
}

TEST(LayerSupportTest, FullLayersOfAMixedModelAreServed) {
  for (const char* model :
       {"gemma-3-270m", "gemma-3-27b", "llama-4-scout", "exaone-4.0-32b", "qwen3-next-80b"}) {
    const ModelShape shape = shape_of(model);
    EXPECT_TRUE(spec_of_kind(shape, shape.kinds[1], 16, QueryLengths::kMany).is_ok()) << model;
  }
}

TEST(LayerSupportTest, HeadSizesMayDifferFromKindToKind) {
  const ModelShape shape = shape_of("gemma-4-26b");
  for (const LayerKind& kind : shape.kinds) {
    const auto spec = spec_of_kind(shape, kind, 16, QueryLengths::kMany);
    ASSERT_TRUE(spec.is_ok()) << spec.status().to_string();
    EXPECT_EQ(spec->head_size, kind.attention.head_size);
  }
  EXPECT_EQ(shape.kinds[1].attention.head_size, 512);
}

TEST(LayerSupportTest, BadBlockSizeIsTheCallersMistake) {
  const ModelShape shape = shape_of("llama-3.1-8b");
  EXPECT_EQ(spec_of_kind(shape, shape.kinds[0], 0, QueryLengths::kOne).status().code(),
            StatusCode::kInvalidArgument);
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
