#include "tools/manifest/model_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagejit::manifest {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

Result<Manifest> expand(const std::string& model) {
  return expand_manifest(
      R"({"pagejit_manifest": 1, "targets": "sm_90a", "models": [)" + model + "]}",
      {.default_targets = {}, .folder = PAGEJIT_MODEL_DATA_DIR});
}

std::vector<std::string> lines_of(const std::string& model) {
  const Result<Manifest> manifest = expand(model);
  EXPECT_TRUE(manifest) << manifest.status().to_string();
  std::vector<std::string> lines;
  if (manifest) {
    for (const ListedKernel& kernel : manifest->kernels) lines.push_back(line_of(kernel));
  }
  return lines;
}

// 32 query heads and 8 KV heads of 64.
TEST(ModelEntryTest, KernelsForEachNumberOfGpus) {
  EXPECT_THAT(lines_of(R"({"config": "llama-3.2-1b.json", "tp": [1, 2, 4, 8, 16, 32]})"),
              ElementsAre("sm_90a decode q=bf16 kv=bf16 out=bf16 head_size=64 block_size=16 "
                          "group_size=1",
                          "sm_90a decode q=bf16 kv=bf16 out=bf16 head_size=64 block_size=16 "
                          "group_size=2",
                          "sm_90a decode q=bf16 kv=bf16 out=bf16 head_size=64 block_size=16 "
                          "group_size=4"));
  const std::string error =
      expand(R"({"config": "llama-3.2-1b.json", "tp": [1, 3]})").status().message();
  EXPECT_THAT(error, StartsWith("models[0].tp[1]: "));
  EXPECT_THAT(lines_of(R"({"config": "llama-3.2-1b.json", "tp": [1, 3], "skip_illegal": true})"),
              SizeIs(1));
}

TEST(ModelEntryTest, WhatIsSkippedCountsToo) {
  const std::string models = R"({"config": "llama-3.2-1b.json", "tp": [1, 3, 5, 7],
                                 "skip_illegal": true})";
  const auto with_limit = [&](size_t max_kernels) {
    return expand_manifest(
        R"({"pagejit_manifest": 1, "targets": "sm_90a", "models": [)" + models + "]}",
        {.default_targets = {}, .folder = PAGEJIT_MODEL_DATA_DIR, .max_kernels = max_kernels});
  };
  EXPECT_THAT(with_limit(3).status().message(), HasSubstr("more than 3 kernels"));
  ASSERT_TRUE(with_limit(4));
  EXPECT_THAT(with_limit(4)->kernels, SizeIs(1));
}

TEST(ModelEntryTest, WhatAModelLeavesOpenIsAProduct) {
  const std::vector<std::string> lines =
      lines_of(R"({"config": ["llama-3.2-1b.json", "smollm2-135m.json"],
                   "queries": ["one", "many"], "block_size": [16, 32], "dtype": "f16",
                   "kv_dtype": ["f16", "fp8_e4m3"], "pdl": true})");
  EXPECT_THAT(lines, SizeIs(2 * 2 * 2 * 2));
  EXPECT_THAT(lines, testing::Contains("sm_90a many q=f16 kv=fp8_e4m3 out=f16 head_size=64 "
                                       "block_size=32 group_size=3 causal=1 pdl=1"));
}

TEST(ModelEntryTest, LayersWithoutAKernelAreTold) {
  const Result<Manifest> manifest = expand(R"({"config": "qwen3-next-80b.json", "tp": [1, 2]})");
  ASSERT_TRUE(manifest) << manifest.status().to_string();
  EXPECT_THAT(manifest->kernels, testing::Not(IsEmpty()));
  EXPECT_THAT(manifest->unsupported, ElementsAre(AllOf(StartsWith("qwen3-next-80b.json on 1 GPU: "),
                                                       HasSubstr("linear_attention")),
                                                 StartsWith("qwen3-next-80b.json on 2 GPUs: ")));
}

TEST(ModelEntryTest, MessagesHaveTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "models[0].config: missing"},
      {R"({"config": 1})", "models[0].config: 1: must be a text"},
      {R"({"config": "llama-3.2-1b.json", "tp": "two"})", "models[0].tp: two: must be a whole"},
      {R"({"config": "llama-3.2-1b.json", "tp": 0})", "models[0].tp: "},
      {R"({"config": "llama-3.2-1b.json", "head_size": 64})",
       "models[0].head_size: unknown field; legal are config, tp"},
      {R"({"config": "llama-3.2-1b.json", "queries": "all"})",
       "models[0].queries: queries \"all\": must be decode, few, many or shared"},
      {R"({"config": "llama-3.2-1b.json", "kv_dtype": "int4"})",
       "models[0]: token_scales 0: must be 1 where kv_dtype is int4"},
      {R"({"config": "llama-3.2-1b.json", "block_size": [0]})", "models[0]"},
  };
  for (const auto& [model, sentence] : cases) {
    const Result<Manifest> manifest = expand(model);
    ASSERT_FALSE(manifest) << model;
    EXPECT_EQ(manifest.status().code(), StatusCode::kInvalidArgument) << model;
    EXPECT_THAT(manifest.status().message(), StartsWith(sentence)) << model;
  }
  const Result<Manifest> absent = expand(R"({"config": "absent.json"})");
  EXPECT_EQ(absent.status().code(), StatusCode::kCacheError);
  EXPECT_THAT(absent.status().message(), StartsWith("models[0].config: "));
}

}  // namespace
}  // namespace pagejit::manifest
