#include "tools/manifest/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "generator/families.h"
#include "generator/spec_parser.h"
#include "tools/reference/random.h"

namespace pagejit::manifest {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// With the frame of a manifest for sm_90a around its members.
std::string framed(const std::string& members) {
  return R"({"pagejit_manifest": 1, "targets": ["sm_90a"], )" + members + "}";
}
std::string kernels(const std::string& objects) { return framed("\"kernels\": [" + objects + "]"); }

std::vector<std::string> expand(const std::string& json) {
  const Result<Manifest> manifest = expand_manifest(json, {});
  EXPECT_TRUE(manifest) << manifest.status().to_string();
  std::vector<std::string> lines;
  if (manifest) {
    for (const ListedKernel& kernel : manifest->kernels) lines.push_back(line_of(kernel));
  }
  return lines;
}

std::string error_of(const std::string& json) {
  const Result<Manifest> manifest = expand_manifest(json, {});
  EXPECT_FALSE(manifest) << json;
  EXPECT_EQ(manifest.status().code(), StatusCode::kInvalidArgument) << json;
  return manifest.status().message();
}

TEST(ManifestTest, ArraysAreProducts) {
  const std::vector<std::string> lines = expand(R"({"pagejit_manifest": 1,
    "targets": ["sm_90a", "sm_80"],
    "kernels": [{"family": "attention", "head_size": [64, 128], "block_size": 16,
                 "group_size": [1, 4, 8], "dtype": "bf16", "kv_dtype": ["bf16", "fp8_e4m3"]}]})");
  ASSERT_EQ(lines.size(), 2u * 2 * 3 * 2);
  EXPECT_EQ(lines[0],
            "sm_80 decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=1");
  EXPECT_EQ(lines[1],
            "sm_90a decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16 group_size=1");
  EXPECT_THAT(lines, Contains("sm_90a decode q=bf16 kv=fp8_e4m3 out=bf16 head_size=64 "
                              "block_size=16 group_size=8"));
}

TEST(ManifestTest, KernelsThatAreNamedTwiceAreListedOnce) {
  EXPECT_THAT(
      expand(kernels(R"({"family": "top_k"}, {"spec": ["top_k", " top_k  debug=0"]},
                                {"family": "top_k", "debug": [true, false, 0], "targets":
                                 ["sm_90a", "90a", "9.0"]})")),
      ElementsAre("sm_90 top_k", "sm_90a top_k", "sm_90 top_k debug=1", "sm_90a top_k debug=1"));
}

TEST(ManifestTest, EveryFamilyAndEveryFieldOfItsText) {
  for (const std::string_view family : family_names()) {
    const AnySpec spec = *default_spec(family);
    if (!validate_any(spec)) continue;
    EXPECT_THAT(expand(kernels("{\"family\": \"" + std::string(family) + "\"}")),
                ElementsAre("sm_90a " + text_of(spec)));
  }
  EXPECT_THAT(expand(kernels(R"({"family": "cache_write", "dtype": "f16", "kv_dtype": "fp8",
                                 "scale": "tensor", "rope": "neox", "rotary_dim": 64,
                                 "cos_sin_dtype": "f16", "pdl": true})")),
              ElementsAre("sm_90a cache_write dtype=f16 kv=fp8_e4m3 scale=tensor head_size=128 "
                          "block_size=16 rope=neox rotary_dim=64 cos_sin=f16 pdl=1"));
  EXPECT_THAT(expand(kernels(R"({"family": "attention", "queries": "many", "causality": 1,
                                 "dtype": "f16", "out": "bf16", "kv_layout": "vllm"})")),
              ElementsAre("sm_90a many q=f16 kv=f16 out=bf16 head_size=128 block_size=16 "
                          "group_size=1 causal=1 layout=vllm"));
}

TEST(ManifestTest, CompositionsAreTheirKernels) {
  const std::vector<std::string> lines =
      expand(kernels(R"({"family": "cascade", "queries": ["few", "many"], "causal": true})"));
  // The prefix and the merge are the same.
  EXPECT_THAT(lines, ElementsAre(HasSubstr("few "), HasSubstr("many "),
                                 HasSubstr("merge_states in=f32"), HasSubstr("shared ")));
  EXPECT_THAT(
      expand(kernels(R"({"spec": "cascade few causal=1"}, {"spec": "cascade many causal=1"})")),
      lines);
  EXPECT_THAT(
      expand(kernels(R"({"family": "sparse_attention", "head_size": 576, "head_size_v": 512,
                                 "latent": true, "table": "positions", "block_size": 64,
                                 "group_size": 64, "index_num_heads": [32, 64]})")),
      ElementsAre(StartsWith("sm_90a decode"),
                  "sm_90a index_logits num_heads=32 head_size=128 block_size=64",
                  "sm_90a index_logits num_heads=64 head_size=128 block_size=64", "sm_90a top_k"));
}

TEST(ManifestTest, ExcludedIsWhatMatchesAllFieldsOfAnObject) {
  const std::string object =
      R"({"family": "attention", "head_size": [64, 128], "kv": ["bf16", "fp8_e4m3"]})";
  const auto with = [&](const std::string& exclude) {
    return expand(framed("\"kernels\": [" + object + R"(, {"family": "top_k"}], "exclude": [)" +
                         exclude + "]"));
  };
  EXPECT_THAT(with(""), SizeIs(5));
  const std::vector<std::string> lines = with(R"({"head_size": 64, "kv_dtype": "fp8_e4m3"})");
  EXPECT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines, Each(testing::Not(HasSubstr("kv=fp8_e4m3 out=bf16 head_size=64"))));
  EXPECT_THAT(with(R"({"head_size": [64, 128]})"), ElementsAre("sm_90a top_k"));
  EXPECT_THAT(with(R"({"head_size": 64}, {"kv": "fp8"})"), SizeIs(2));
  EXPECT_THAT(with(R"({"family": "attention"})"), ElementsAre("sm_90a top_k"));
  EXPECT_THAT(with(R"({"target": "sm_80"})"), SizeIs(5));
  EXPECT_THAT(with(R"({"target": ["sm_80", "sm_90a"]})"), SizeIs(0));
  EXPECT_THAT(with(R"({"spec": "top_k"})"), SizeIs(4));
  EXPECT_THAT(with(R"({"dtype": "bf16"})"), ElementsAre("sm_90a top_k"));
  EXPECT_THAT(with(R"({"head_size_v": 128})"), SizeIs(3)) << "K's where there is no own";
  // What is excluded need not be legal.
  EXPECT_THAT(expand(framed(R"("kernels": [{"family": "attention", "head_size": [100, 128]}],
                              "exclude": [{"head_size": 100}])")),
              SizeIs(1));
}

TEST(ManifestTest, IllegalCombinationsAreErrorsUnlessTheyAreSkipped) {
  const std::string fields = R"("family": "attention", "head_size": [64, 100], "causal": [0, 1])";
  EXPECT_THAT(error_of(kernels("{" + fields + "}")), StartsWith("kernels[0].head_size[1]: 100: "));
  EXPECT_EQ(error_of(kernels(R"({"family": "attention", "causal": [0, 1]})")),
            "kernels[0].causal[1]: 1: must be none (0) where queries is one (0), since a single "
            "query token sees all keys");
  EXPECT_THAT(expand(kernels("{" + fields + R"(, "skip_illegal": true})")), SizeIs(1));
  // Of the targets, too.
  const std::string pdl = R"("family": "attention", "pdl": true, "targets": ["sm_80", "sm_90a"])";
  EXPECT_THAT(expand_manifest(kernels("{" + pdl + "}"), {}).status().message(),
              AllOf(StartsWith("kernels[0]"), HasSubstr("sm_80")));
  EXPECT_THAT(expand(kernels("{" + pdl + R"(, "skip_illegal": true})")),
              ElementsAre(StartsWith("sm_90a")));
}

TEST(ManifestTest, MessagesHaveTheirPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "not valid JSON: "},
      {"[]", "a manifest is a JSON object"},
      {"{}", "pagejit_manifest: missing; must be 1"},
      {R"({"pagejit_manifest": 2})", "pagejit_manifest: 2: must be 1"},
      {framed(R"("kernel": [])"),
       "kernel: unknown field; legal are pagejit_manifest, targets, kernels, models, exclude"},
      {framed(R"("kernels": {})"), "kernels: an object: must be an array of objects"},
      {kernels("1"), "kernels[0]: 1: must be an object"},
      {kernels("{}"), "kernels[0].family: missing; or give a spec"},
      {kernels(R"({"family": 7})"), "kernels[0].family: 7: must be a text"},
      {kernels(R"({"family": "decode"})"), "kernels[0].family \"decode\": legal are attention"},
      {kernels(R"({"family": "top_k"}, {"family": "top_k", "head_size": 1})"),
       "kernels[1].head_size: unknown field; legal for top_k are row_alignment and debug"},
      {kernels(R"({"family": "attention", "head_size": 100})"),
       "kernels[0].head_size: 100: must be a multiple of 8"},
      {kernels(R"({"family": "attention", "head_size": [64, 100]})"),
       "kernels[0].head_size[1]: 100: must be a multiple of 8"},
      {kernels(R"({"family": "attention", "head_size": [64, "x"]})"),
       "kernels[0].head_size[1]: head_size \"x\": must be a whole number"},
      {kernels(R"({"family": "attention", "head_size": 64.5})"),
       "kernels[0].head_size: 64.5: must be a whole number, a text"},
      {kernels(R"({"family": "attention", "head_size": {}})"),
       "kernels[0].head_size: an object: must be a whole number, a text"},
      {kernels(R"({"family": "attention", "head_size": []})"),
       "kernels[0].head_size: an empty array gives no kernels"},
      {kernels(R"({"family": "attention", "kv_dtype": "fp4"})"),
       "kernels[0].kv_dtype: kv_dtype: data type \"fp4\": legal are"},
      {kernels(R"({"family": "attention", "kv_dtype": "bf16", "kv": "bf16"})"),
       "kernels[0].kv_dtype: the same field as kv"},
      {kernels(R"({"family": "attention", "skip_illegal": 1})"),
       "kernels[0].skip_illegal: 1: must be true or false"},
      {kernels(R"({"family": "attention", "targets": ["sm_90a", "sm"]})"),
       "kernels[0].targets[1]: target \"sm\": legal are"},
      {R"({"pagejit_manifest": 1, "kernels": [{"family": "top_k"}]})",
       "kernels[0].targets: missing, and the manifest has none for all kernels"},
      {kernels(R"({"spec": "top_k debug=2"})"),
       "kernels[0].spec: byte 6: debug \"2\": must be 0 or 1"},
      {kernels(R"({"spec": "top_k", "family": "top_k"})"), "kernels[0].family: unknown field"},
      {framed(R"("exclude": [{}])"), "exclude[0]: an empty object would take out every kernel"},
      {framed(R"("exclude": [{"head_dim": 64}])"),
       "exclude[0].head_dim: unknown field \"head_dim\": no family of kernels has it"},
      {framed(R"("exclude": [{"rope": "gpt"}])"), "exclude[0].rope: rope \"gpt\": must be none"},
      {framed(R"("exclude": [{"family": "gemm"}])"), "exclude[0].family: family \"gemm\": legal"},
      {framed(R"("targets": [])"), "key \"targets\": given twice in one object"},
  };
  for (const auto& [json, sentence] : cases) EXPECT_THAT(error_of(json), StartsWith(sentence));
}

TEST(ManifestTest, ProductsAreBoundedBeforeTheyAreMade) {
  std::string numbers = "1";
  for (int i = 2; i <= 1000; ++i) numbers += "," + std::to_string(i);
  const std::string object = R"({"family": "attention", "block_size": [)" + numbers +
                             R"(], "group_size": [)" + numbers + R"(], "head_size": [)" + numbers +
                             "]}";
  EXPECT_THAT(error_of(kernels(object)),
              HasSubstr("kernels[0]: with these combinations for 1 targets the manifest comes to "
                        "more than 100000 kernels"));
  // Many objects, each within the bound.
  std::string objects = R"({"family": "merge_states", "head_size": [)" + numbers +
                        R"(], "in": ["f16", "bf16", "f32"], "out": ["f16", "bf16", "f32"],
                            "listed": [0, 1], "pdl": [0, 1]})";
  objects += "," + objects + "," + objects;
  EXPECT_THAT(error_of(kernels(objects)), StartsWith("kernels[2]: "));
}

TEST(ManifestTest, HostileTextsAreAnswered) {
  EXPECT_THAT(error_of(std::string(1000000, '[')), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(std::string(100000, '[') + std::string(100000, ']')),
              HasSubstr("levels deep"));
  std::string deep = "1";
  for (int i = 0; i < 1000; ++i) deep = "{\"a\":" + deep + "}";
  EXPECT_THAT(error_of(deep), HasSubstr("levels deep"));

  const std::string base = R"({"pagejit_manifest": 1, "targets": ["sm_90a", "sm_80"], "kernels": [
    {"family": "attention", "head_size": [64, 128], "kv_dtype": ["bf16", "fp8_e4m3"]},
    {"spec": "cascade few causal=1"}, {"family": "cache_write", "debug": [true, false]}],
    "exclude": [{"head_size": 64, "kv_dtype": "fp8_e4m3"}]})";
  ASSERT_THAT(expand(base), SizeIs(16));
  SplitMix64 rng(5);
  int num_legal = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = base;
    for (int64_t k = rng.below(3); k >= 0; --k) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.below(2) == 0) text[at] = static_cast<char>(rng.next());
      if (rng.below(8) == 0) text.insert(at, text.substr(at / 2, 40));
      if (rng.below(16) == 0) text.resize(at + 1);
    }
    const Result<Manifest> manifest = expand_manifest(text, {});
    num_legal += manifest ? 1 : 0;
    ASSERT_NE(manifest.is_ok(), !manifest.status().message().empty());
  }
  EXPECT_GT(num_legal, 10);
}

}  // namespace
}  // namespace pagejit::manifest
