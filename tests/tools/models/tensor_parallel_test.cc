#include "tools/models/tensor_parallel.h"

#include <gtest/gtest.h>

#include "tests/tools/models/model_files.h"

namespace pagejit::models {
namespace {

LayerAttention share_of(const char* model, int tensor_parallel) {
  const Result<ModelShape> share =
      apply_tensor_parallel(*load_model_config(data_path(model)), tensor_parallel);
  EXPECT_TRUE(share.is_ok()) << share.status().to_string();
  return share ? share->kinds[0].attention : LayerAttention{};
}

std::string error_of(const char* model, int tensor_parallel) {
  const Result<ModelShape> share =
      apply_tensor_parallel(*load_model_config(data_path(model)), tensor_parallel);
  EXPECT_EQ(share.status().code(), StatusCode::kInvalidArgument);
  return share.status().message();
}

TEST(TensorParallelTest, HeadsAreDivided) {
  for (const int degree : {1, 2, 4, 8}) {
    EXPECT_EQ(share_of("llama-3.1-8b", degree).num_heads, 32 / degree);
    EXPECT_EQ(share_of("llama-3.1-8b", degree).num_kv_heads, 8 / degree);
  }
}

TEST(TensorParallelTest, BeyondTheKvHeadsTheGroupShrinks) {
  EXPECT_EQ(share_of("llama-3.1-8b", 16).num_heads, 2);
  EXPECT_EQ(share_of("llama-3.1-8b", 16).num_kv_heads, 1);
  EXPECT_EQ(share_of("llama-3.1-8b", 16).group_size(), 2);
}

TEST(TensorParallelTest, LatentAttentionKeepsOneKvHead) {
  EXPECT_EQ(share_of("deepseek-v3", 8).num_heads, 16);
  EXPECT_EQ(share_of("deepseek-v3", 8).num_kv_heads, 1);
}

TEST(TensorParallelTest, HeadsThatDoNotDivideAreRefused) {
  EXPECT_EQ(error_of("falcon-7b", 2), "tensor parallelism 2: must divide the 71 query heads");
  EXPECT_EQ(error_of("smollm2-135m", 2), "tensor parallelism 2: must divide the 9 query heads");
}

TEST(TensorParallelTest, KvHeadsThatDoNotDivideAreRefused) {
  // 24/8 heads of Phi-4-mini: 3 divides the query heads only.
  EXPECT_EQ(error_of("phi-4-mini", 3),
            "tensor parallelism 3 and 8 KV heads: the larger must be a multiple of the smaller");
  EXPECT_EQ(error_of("phi-4-mini", 12),
            "tensor parallelism 12 and 8 KV heads: the larger must be a multiple of the smaller");
}

TEST(TensorParallelTest, DegreesOutOfRangeAreRefused) {
  EXPECT_EQ(error_of("llama-3.1-8b", 0), "tensor parallelism 0: must be in [1, 1024]");
  EXPECT_EQ(error_of("llama-3.1-8b", -2), "tensor parallelism -2: must be in [1, 1024]");
}

TEST(TensorParallelTest, LayersWithoutHeadsAreLeftAlone) {
  EXPECT_EQ(share_of("qwen3-next-80b", 2).family, LayerFamily::kLinear);
}

}  // namespace
}  // namespace pagejit::models
