#include "generator/renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

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

TEST(RendererTest, Sm75HasItsOwnDeviceFunctionsBelowTheSameText) {
  KernelSpec spec = kLlama;
  spec.q_dtype = spec.kv_dtype = spec.out_dtype = DataType::kFloat16;
  const std::string gpu = render_text(spec, *parse_target("sm_75"));
  EXPECT_EQ(kernel_text(gpu), kernel_text(render_text(spec, Target::host(75))));
  for (const char* instruction :
       {"cp.async.c", "m16n8k16.row", "cvt.rn.f16x2.f32", "cvt.rn.bf16"}) {
    EXPECT_THAT(gpu.substr(0, gpu.find(kKernelTextMarker)), Not(HasSubstr(instruction)));
    EXPECT_THAT(render_text(spec, *parse_target("sm_80")), HasSubstr(instruction));
  }
  EXPECT_THAT(gpu, HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"));
  // Both round what they convert, and multiply as one instruction does elsewhere.
  EXPECT_THAT(gpu, HasSubstr("pack_bf16x2("));
  EXPECT_THAT(gpu, HasSubstr("mma_m16n8k16_f16("));
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
  EXPECT_THAT(text, HasSubstr("static_assert(sizeof(AttentionShared) == kConfig.shared_bytes"));
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

// What a kernel consists of beside the parameters, which all share.
std::string code_of(const KernelSpec& spec) {
  std::string text = kernel_text(render_text(spec, *parse_target("sm_90a")));
  const size_t params = text.find("#line 1 \"shared/attention_params.h\"");
  const size_t code = text.find("#line 1 \"attention/", params);
  EXPECT_LT(params, code);
  EXPECT_NE(code, std::string::npos);
  return text.substr(0, params) + text.substr(code);
}

struct Feature {
  const char* spec;   // the plain kernel, plus this
  const char* trace;  // a name in its text
};
constexpr Feature kFeatures[] = {
    {"window=1", "window_left"},  {"chunked=1", "chunk_size"}, {"custom_mask=1", "custom_mask"},
    {"soft_cap=1", "soft_cap"},   {"alibi=1", "alibi_slopes"}, {"sinks=1", "params.sinks"},
    {"debug=1", "report_debug"},  {"table=csr", "kv_indices"}, {"pdl=1", "grid_dependency"},
    {"block_sparse=1", "sparse"}, {"qq_bias=1", "qq_bias"},
};

TEST(RendererTest, APlainDecodeHasNothingOfWhatItDoesNotUse) {
  const std::string plain = code_of(kLlama);
  for (const Feature& feature : kFeatures) {
    EXPECT_THAT(plain, Not(HasSubstr(feature.trace)));
    const auto spec = parse_spec("decode head_size=128 group_size=4 " + std::string(feature.spec));
    ASSERT_TRUE(spec) << spec.status().to_string();
    EXPECT_THAT(code_of(*spec), HasSubstr(feature.trace));
    for (const Feature& other : kFeatures) {
      if (&other == &feature) continue;
      EXPECT_THAT(code_of(*spec), Not(HasSubstr(other.trace)));
    }
  }
  for (const char* word :
       {"query_start_loc", "find_sequence", "causal", "QuerySight", "sink", "kv_start_loc"}) {
    EXPECT_THAT(plain, Not(HasSubstr(word)));
  }
  EXPECT_THAT(code_of(*parse_spec("few causal=1")), HasSubstr("find_sequence"));
}

TEST(RendererTest, RangesAreOnlyWhereTheyShowMore) {
  const auto has_ranges = [](const std::string& spec) {
    const std::string code = code_of(*parse_spec(spec + " head_size=128 group_size=4"));
    return code.find("VisibleRange (&seen)") != std::string::npos;
  };
  for (const char* plain : {"decode", "few", "many causal=1", "few window=1", "many chunked=1"}) {
    EXPECT_FALSE(has_ranges(plain)) << plain;
    EXPECT_THAT(code_of(*parse_spec(std::string(plain))), Not(HasSubstr("ranges")));
  }
  for (const char* all : {"decode", "few", "many custom_mask=1 alibi=1"}) {
    EXPECT_FALSE(has_ranges(std::string(all) + " bidirectional_ranges=1")) << all << " sees all";
  }
  for (const char* some : {"many causal=1", "few causal=sequence", "decode window=1"}) {
    EXPECT_TRUE(has_ranges(std::string(some) + " bidirectional_ranges=1")) << some;
  }
}

TEST(RendererTest, GridDependenciesAreOnlyInKernelsForThem) {
  KernelSpec spec = kLlama;
  const std::string plain = render_text(spec, *parse_target("sm_90a"));
  EXPECT_THAT(plain, Not(HasSubstr("griddepcontrol")));
  spec.pdl = true;
  const std::string gpu = render_text(spec, *parse_target("sm_90a"));
  EXPECT_EQ(kernel_text(gpu), kernel_text(render_text(spec, Target::host())));
  EXPECT_THAT(gpu, HasSubstr("griddepcontrol.wait;"));
  EXPECT_THAT(gpu, HasSubstr("griddepcontrol.launch_dependents;"));
  // The entry waits before anything else.
  const size_t entry = gpu.find("pagejit_decode_bf16_d128_b16_g4_pdl(");
  ASSERT_NE(entry, std::string::npos);
  EXPECT_LT(gpu.find("begin_behind_previous_grid();", entry), gpu.find("attention(params)", entry));
  // But for the wait's own calls the kernel is the plain one, loads included; these differ in the
  // device functions alone.
  EXPECT_THAT(plain, HasSubstr("word.load_nc(p);"));
  EXPECT_THAT(gpu, Not(HasSubstr("word.load_nc(p);")));
}

}  // namespace
}  // namespace pagejit
