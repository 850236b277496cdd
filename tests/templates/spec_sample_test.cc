// Legal specs at random compile for three targets: some in each run, with --all a thousand. Spills
// are allowed only where the spec is not plain: they are counted and told. Needs NVRTC, no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "generator/planner.h"
#include "generator/renderer.h"
#include "tests/generator/spec_space.h"
#include "tests/sweep/sweep_main.h"
#include "tests/templates/nvrtc_target.h"

namespace pagejit {
namespace {

constexpr int kSome = 8;
constexpr int kAll = 1000;
constexpr int kSeed = 3;

class SpecSampleTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SpecSampleTest, LegalSpecsCompile) {
  static const std::shared_ptr<Compiler> one_thread = make_nvrtc_compiler("", 1);
  const Target target = *parse_target(GetParam());
  require_target(target);
  if (IsSkipped() || HasFatalFailure()) return;
  SplitMix64 rng(kSeed);
  std::vector<double> times;  // ms, by one thread of NVRTC
  std::string slowest;
  int num_spilled = 0;
  for (int i = 0; i < (run_all() ? kAll : kSome); ++i) {
    const KernelSpec spec = draw_legal_spec(rng);
    const Result<KernelConfig> config = plan(spec, target);
    if (!config) continue;  // too large for the target, or not of its types: spec_space_test
    const Result<KernelSource> source = render(*config);
    ASSERT_TRUE(source) << source.status().to_string();
    const Result<CompiledImage> compiled = one_thread->compile(*source);
    ASSERT_TRUE(compiled) << canonical_text(spec) << ": " << compiled.status().to_string();
    const double ms = compiled->compile_ms;
    if (times.empty() || ms > *std::max_element(times.begin(), times.end())) {
      slowest = canonical_text(spec);
    }
    times.push_back(ms);
    if (compiled->report.spill_store_bytes > 0) {
      ++num_spilled;
      std::printf("spills %d bytes for %s: %s\n", compiled->report.spill_store_bytes, GetParam(),
                  canonical_text(spec).c_str());
    }
  }
  ASSERT_GT(times.size(), static_cast<size_t>(run_all() ? kAll : kSome) / 2);
  std::sort(times.begin(), times.end());
  std::printf("%s: %zu compiled, %d with spills; median %.0f ms, worst %.0f ms: %s\n", GetParam(),
              times.size(), num_spilled, times[times.size() / 2], times.back(), slowest.c_str());
}

INSTANTIATE_TEST_SUITE_P(Targets, SpecSampleTest, ::testing::Values("sm_80", "sm_90a", "sm_120a"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace pagejit
