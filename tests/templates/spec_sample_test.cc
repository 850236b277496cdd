// Legal specs at random, and a pairwise cover of them, compile for three targets: some in each run,
// with --all a thousand and the whole cover. Spills are allowed only where the spec is not plain:
// they are counted and told. Needs NVRTC, no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "generator/planner.h"
#include "generator/renderer.h"
#include "tests/generator/spec_cover.h"
#include "tests/generator/spec_space.h"
#include "tests/sweep/sweep_main.h"
#include "tests/templates/compile_checks.h"

namespace pagejit {
namespace {

constexpr int kSome = 8;
constexpr int kAll = 1000;
constexpr int kSeed = 3;

class SpecSampleTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { require_target(target_); }

  // Compiles the spec by one thread of NVRTC; false where the target has no tile for it.
  bool compiles(const KernelSpec& spec) {
    static const std::shared_ptr<Compiler> one_thread = make_nvrtc_compiler("", 1);
    const Result<KernelConfig> config = plan(spec, target_);
    if (!config) return false;  // too large for the target, or not of its types: spec_space_test
    const Result<KernelSource> source = render(*config);
    EXPECT_TRUE(source) << source.status().to_string();
    if (!source) return false;
    const Result<CompiledImage> compiled = one_thread->compile(*source);
    EXPECT_TRUE(compiled) << canonical_text(spec) << ": " << compiled.status().to_string();
    if (!compiled) return false;
    const double ms = compiled->compile_ms;
    if (times_.empty() || ms > *std::max_element(times_.begin(), times_.end())) {
      slowest_ = canonical_text(spec);
    }
    times_.push_back(ms);
    if (compiled->report.spill_store_bytes > 0) {
      ++num_spilled_;
      std::printf("spills %d bytes for %s: %s\n", compiled->report.spill_store_bytes, GetParam(),
                  canonical_text(spec).c_str());
    }
    return true;
  }

  void print_summary(const char* which) const {
    std::vector<double> times = times_;
    std::sort(times.begin(), times.end());
    std::printf("%s: %zu specs %s compiled, %d with spills; median %.0f ms, worst %.0f ms: %s\n",
                GetParam(), times.size(), which, num_spilled_, times[times.size() / 2],
                times.back(), slowest_.c_str());
    std::fflush(stdout);
  }

  const Target target_ = *parse_target(GetParam());
  std::vector<double> times_;  // ms
  std::string slowest_;
  int num_spilled_ = 0;
};

TEST_P(SpecSampleTest, LegalSpecsCompile) {
  if (run_all()) {
    for (const KernelSpec& spec : pairwise_cover(target_).specs) EXPECT_TRUE(compiles(spec));
    print_summary("of the pairwise cover");
  }
  SplitMix64 rng(kSeed);
  const int num_drawn = run_all() ? kAll : kSome;
  int num_compiled = 0;
  for (int i = 0; i < num_drawn; ++i) num_compiled += compiles(draw_legal_spec(rng));
  print_summary("in all");
  EXPECT_GT(num_compiled, num_drawn / 2);
}

TEST_P(SpecSampleTest, LegalLatentSpecsCompile) {
  constexpr int kSomeLatent = 4;
  constexpr int kAllLatent = 200;
  SplitMix64 rng(kSeed);
  const int num_drawn = run_all() ? kAllLatent : kSomeLatent;
  int num_compiled = 0;
  for (int i = 0; i < num_drawn; ++i) num_compiled += compiles(draw_legal_latent_spec(rng));
  print_summary("whose keys hold their values");
  EXPECT_GT(num_compiled, num_drawn / 2);
}

INSTANTIATE_TEST_SUITE_P(Targets, SpecSampleTest, ::testing::Values("sm_80", "sm_90a", "sm_120a"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace pagejit
