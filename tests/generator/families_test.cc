// The specs of the families beside attention: their rules, their texts, their sources.
#include "generator/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "generator/renderer.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;

std::string kernel_text(const AnySpec& spec, const char* target) {
  const auto config = plan_any(spec, *parse_target(target));
  EXPECT_TRUE(config) << config.status().to_string();
  const auto source = render(*config);
  EXPECT_TRUE(source) << source.status().to_string();
  return source->text.substr(source->text.find(kKernelTextMarker));
}

// One spec of each family.
std::vector<AnySpec> one_of_each() { return {MergeStatesSpec{kBF16, kF32, 72, true}}; }

TEST(FamiliesTest, KernelTextIsTheSameForGpuAndHost) {
  for (const AnySpec& spec : one_of_each()) {
    for (const int sm : {80, 90, 120}) {
      const std::string host = "host_" + std::to_string(sm);
      const std::string gpu = "sm_" + std::to_string(sm);
      EXPECT_EQ(kernel_text(spec, gpu.c_str()), kernel_text(spec, host.c_str())) << text_of(spec);
    }
  }
}

TEST(FamiliesTest, KernelTextHasNoInlineAssemblyAndNoConditionalCompilation) {
  for (const AnySpec& spec : one_of_each()) {
    const std::string text = std::regex_replace(
        kernel_text(spec, "sm_90a"),
        std::regex("#ifndef PAGEJIT_HOST_DEVICE\n#define PAGEJIT_HOST_DEVICE\n#endif\n"), "");
    EXPECT_THAT(text, Not(HasSubstr("asm"))) << text_of(spec);
    EXPECT_THAT(text, Not(HasSubstr("threadIdx"))) << text_of(spec);
    EXPECT_FALSE(std::regex_search(text, std::regex("\n#\\s*(if|include)"))) << text_of(spec);
    EXPECT_THAT(text, HasSubstr("//   " + text_of(spec) + "\n"));
  }
}

TEST(FamiliesTest, EachSpecHasItsOwnTextAndKernelName) {
  std::vector<AnySpec> specs = one_of_each();
  specs.emplace_back(KernelSpec{});
  specs.emplace_back(MergeStatesSpec{});
  specs.emplace_back(MergeStatesSpec{kF16, kBF16, 128});
  specs.emplace_back(MergeStatesSpec{kBF16, kF16, 128});
  specs.emplace_back(MergeStatesSpec{kBF16, kBF16, 64});
  specs.emplace_back(MergeStatesSpec{kBF16, kBF16, 128, true});
  std::set<std::string> texts;
  std::set<std::string> names;
  for (const AnySpec& spec : specs) {
    texts.insert(text_of(spec));
    names.insert(render(*plan_any(spec, Target::host()))->kernel_name);
  }
  EXPECT_EQ(texts.size(), specs.size());
  EXPECT_EQ(names.size(), specs.size());
}

TEST(FamiliesTest, UnknownTargetsAreRefused) {
  for (const AnySpec& spec : one_of_each()) {
    const auto config = plan_any(spec, *parse_target("sm_70"));
    EXPECT_EQ(config.status().code(), StatusCode::kUnsupported) << text_of(spec);
  }
}

TEST(MergeStatesSpecTest, EachRuleNamesItsFieldAndWhatIsLegal) {
  const auto message = [](const MergeStatesSpec& spec) { return validate(spec).message(); };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({kF32, kF16, 4096, true}), "");
  EXPECT_EQ(message({static_cast<DataType>(9), kF16, 64}),
            "in_dtype 9: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message({kF16, static_cast<DataType>(9), 64}),
            "out_dtype 9: legal are f16 (0), bf16 (1) and f32 (2)");
  EXPECT_EQ(message({kF16, kF16, 0}), "head_size 0: must be in [1, 4096]");
  EXPECT_EQ(message({kF16, kF16, 4097}), "head_size 4097: must be in [1, 4096]");
}

TEST(MergeStatesSpecTest, CanonicalTextHasEveryField) {
  EXPECT_EQ(canonical_text(MergeStatesSpec{}), "merge_states in=bf16 out=bf16 head_size=128");
  EXPECT_EQ(canonical_text(MergeStatesSpec{kF16, kF32, 72, true}),
            "merge_states in=f16 out=f32 head_size=72 listed=1");
}

}  // namespace
}  // namespace pagejit
