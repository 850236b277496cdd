// What the matrices of attention kernels share: the target, and what is asked of each kernel.
#pragma once

#include <gtest/gtest.h>

#include "generator/arch.h"
#include "generator/planner.h"
#include "generator/renderer.h"
#include "tests/templates/compile_checks.h"

namespace pagejit {

struct Shape {
  int head_size;
  int group_size;
};

class AttentionMatrixTest : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override { require_target(GetParam()); }

  // `allowed_bytes`: what may be spilled, and what the stack may have.
  static void expect_clean(const KernelSpec& spec, int allowed_bytes = 0) {
    SCOPED_TRACE(canonical_text(spec) + " for " + GetParam().to_string());
    const auto config = plan(spec, GetParam());
    ASSERT_TRUE(config) << config.status().to_string();
    const CompiledImage compiled = compile_clean(render(*config), allowed_bytes);
    if (compiled.image.empty()) return;
    // The bytes in flight that the plan counts on need its occupancy. Registers go by warp, in
    // units of 256, and lie in four parts among which the warps are dealt.
    const int registers_per_warp = (compiled.report.registers * 32 + 255) / 256 * 256;
    const int warps_per_sm = Arch::kRegistersPerSm / 4 / registers_per_warp * 4;
    EXPECT_GE(warps_per_sm / config->num_warps(), config->attention.min_ctas_per_sm)
        << compiled.report.registers << " registers";
  }
};

inline std::string name_of_target(const ::testing::TestParamInfo<Target>& test) {
  return test.param.to_string();
}

}  // namespace pagejit
