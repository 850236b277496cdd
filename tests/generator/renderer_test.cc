#include "generator/renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "generator/planner.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string render_text(const KernelSpec& spec, const Target& target) {
  const auto config = plan(spec, target);
  EXPECT_TRUE(config) << config.status().to_string();
  const auto source = render(*config);
  EXPECT_TRUE(source) << source.status().to_string();
  return source->text;
}

std::string kernel_text(const std::string& text) {
  const size_t marker = text.find(kKernelTextMarker);
  EXPECT_NE(marker, std::string::npos);
  return text.substr(marker);
}

const KernelSpec kLlama{.head_size = 128, .block_size = 16, .group_size = 4};

TEST(RendererTest, KernelTextIsTheSameForGpuAndHost) {
  for (const int sm : {80, 90, 120}) {
    const std::string gpu = render_text(kLlama, {TargetKind::kCuda, sm, TargetVariant::kPlain});
    const std::string host = render_text(kLlama, Target::host(sm));
    EXPECT_NE(gpu, host);
    EXPECT_EQ(kernel_text(gpu), kernel_text(host));
    EXPECT_GT(kernel_text(gpu).size(), 10000u);
  }
}

TEST(RendererTest, VariantsOfATargetShareTheirText) {
  EXPECT_EQ(render_text(kLlama, *parse_target("sm_90")),
            render_text(kLlama, *parse_target("sm_90a")));
}

TEST(RendererTest, SourceIsSelfContained) {
  for (const char* target : {"sm_90a", "host"}) {
    const std::string text = render_text(kLlama, *parse_target(target));
    EXPECT_FALSE(std::regex_search(text, std::regex("(^|\n)\\s*#\\s*include"))) << target;
    EXPECT_FALSE(std::regex_search(text, std::regex("\\{\\{[a-z_]+\\}\\}"))) << target;
    EXPECT_THAT(text, HasSubstr("#line 1 \"attention/attention.cuh\"")) << target;
  }
}

TEST(RendererTest, BannerAndNameTellTheSpec) {
  const std::string text = render_text(kLlama, *parse_target("sm_90a"));
  EXPECT_THAT(text, HasSubstr("//   " + canonical_text(kLlama) + "\n"));
  EXPECT_THAT(
      text,
      HasSubstr("pagejit_decode_bf16_d128_b16_g4(const __grid_constant__ AttentionParams params)"));
  EXPECT_THAT(text, HasSubstr("static_assert(sizeof(AttentionShared<C>) == C.shared_bytes"));
}

TEST(RendererTest, KernelTextHasNoInlineAssemblyAndNoConditionalCompilation) {
  std::string text = kernel_text(render_text(kLlama, *parse_target("sm_90a")));
  // The shared header may define one marker if the prelude has not.
  text = std::regex_replace(
      text, std::regex("#ifndef PAGEJIT_HOST_DEVICE\n#define PAGEJIT_HOST_DEVICE\n#endif\n"), "");
  EXPECT_THAT(text, Not(HasSubstr("asm")));
  EXPECT_FALSE(std::regex_search(text, std::regex("\n#\\s*if")));
  EXPECT_THAT(text, Not(HasSubstr("threadIdx")));
}

// Each #line must name a template, and the number of the line that follows it there.
TEST(RendererTest, LineDirectivesPointIntoTheTemplates) {
  const std::string text = kernel_text(render_text(kLlama, *parse_target("sm_90a")));
  std::istringstream lines(text);
  std::string line;
  std::string file;
  size_t number = 0;
  int compared = 0;
  while (std::getline(lines, line)) {
    std::smatch match;
    if (std::regex_match(line, match, std::regex("#line (\\d+) \"(.*)\""))) {
      number = std::stoul(match[1]);
      file = match[2];
      continue;
    }
    if (file.empty() || file.ends_with(".tmpl")) continue;  // holes are filled there
    const auto entry = embedded_templates().find(file);
    ASSERT_NE(entry, embedded_templates().end()) << file;
    std::istringstream original{std::string(entry->second)};
    std::string expected;
    for (size_t i = 0; i < number; ++i) std::getline(original, expected);
    if (expected != "#pragma once" && !expected.starts_with("#include")) {
      ASSERT_EQ(line, expected) << file << ":" << number;
      ++compared;
    }
    ++number;
  }
  EXPECT_GT(compared, 500);
}

TEST(RendererTest, AMissingTemplateIsNamed) {
  TemplateSet templates = embedded_templates();
  templates.erase("attention/merge.cuh");
  const auto source = render(*plan(kLlama, Target::host()), templates);
  ASSERT_FALSE(source);
  EXPECT_THAT(source.status().message(), HasSubstr("attention/merge.cuh"));
}

TEST(RendererTest, AnUnknownHoleIsNamed) {
  TemplateSet templates = embedded_templates();
  const std::string changed =
      std::string(templates["attention/attention.cu.tmpl"]) + "{{surprise}}\n";
  templates["attention/attention.cu.tmpl"] = changed;
  const auto source = render(*plan(kLlama, Target::host()), templates);
  ASSERT_FALSE(source);
  EXPECT_THAT(source.status().message(), HasSubstr("no value for \"surprise\""));
}

// Golden sources: a change of any of them is a change of every user's cache key, and is made on
// purpose: PAGEJIT_UPDATE_GOLDEN=1 writes them anew. What all kernels share stands once, in
// shared.cu; the banner, the configuration and the entry of each in a file of its own.
class GoldenSourceTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(PAGEJIT_TEST_GOLDEN_DIR) + "/" + name + ".cu";
    if (std::getenv("PAGEJIT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::ifstream file(path);
    ASSERT_TRUE(file) << path << " is missing; PAGEJIT_UPDATE_GOLDEN=1 writes it";
    std::stringstream golden;
    golden << file.rdbuf();
    EXPECT_TRUE(golden.str() == text) << "the rendered source differs from " << path
                                      << "; if that is meant, PAGEJIT_UPDATE_GOLDEN=1 writes it "
                                         "anew";
  }
};

TEST_P(GoldenSourceTest, IsWhatItWas) {
  const KernelSpec spec = *parse_spec(GetParam());
  const std::string text = kernel_text(render_text(spec, *parse_target("sm_90a")));
  const size_t shared_begin = text.find("#line ");
  const size_t shared_end = text.find("constexpr AttentionConfig kConfig = {");
  ASSERT_NE(shared_begin, std::string::npos);
  ASSERT_NE(shared_end, std::string::npos);
  std::string name = canonical_text(spec);
  for (char& c : name) c = c == ' ' || c == '=' ? '_' : c;
  expect_golden(name, text.substr(0, shared_begin) + text.substr(shared_end));
  expect_golden("shared", text.substr(shared_begin, shared_end - shared_begin));
}

INSTANTIATE_TEST_SUITE_P(
    All, GoldenSourceTest,
    ::testing::Values(
        "decode head_size=128 block_size=16 group_size=4",
        "decode q=f16 kv=f16 out=f16 head_size=72 block_size=5 group_size=71 debug=1",
        "many head_size=128 block_size=16 group_size=8 causal=1",
        "few q=f16 kv=f16 out=f16 head_size=96 block_size=24 group_size=5 causal=sequence "
        "window=1 soft_cap=1 alibi=1 sinks=1"));

}  // namespace
}  // namespace pagejit
