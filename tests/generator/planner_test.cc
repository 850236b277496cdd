#include "generator/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/arch.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const Arch& arch : known_archs()) {
    targets.push_back({TargetKind::kCuda, arch.sm, TargetVariant::kPlain});
    targets.push_back(Target::host(arch.sm));
  }
  return targets;
}

// What every chosen configuration must satisfy, whatever the spec.
void expect_sound(const KernelConfig& config, const Arch& arch) {
  const DecodeConfig& c = config.decode;
  SCOPED_TRACE(canonical_text(config.spec) + " for " + config.target.to_string());
  EXPECT_GE(c.head_warps * c.head_tiles * 8, c.group_size);
  // No idle warp, and no idle tile in more than the last one.
  EXPECT_LT((c.head_warps - 1) * c.head_tiles * 8, c.group_size);
  EXPECT_GE(c.num_stages, 2);
  EXPECT_EQ(c.group_tokens % 16, 0);
  EXPECT_LE(c.group_tokens, 32) << "a lane per token looks up the block ids";
  EXPECT_EQ(c.head_size_padded % 16, 0);
  EXPECT_GE(c.head_size_padded, c.head_size);
  EXPECT_EQ(c.shared_bytes, pagejit_shared::shared_bytes(c));
  EXPECT_LE(c.shared_bytes, arch.shared_bytes_per_cta);
  EXPECT_LE((c.shared_bytes + Arch::kReservedSharedPerCta) * c.min_ctas_per_sm,
            arch.shared_bytes_per_sm);
  EXPECT_LE(config.num_warps() * c.min_ctas_per_sm, arch.max_warps_per_sm);
  EXPECT_LE(config.threads_per_cta(), 512);
  EXPECT_LT(c.token_groups, 16) << "named barriers are numbered 1 to 15";
}

TEST(PlannerTest, EveryLegalSpecHasASoundPlanOnEveryTarget) {
  int plans = 0;
  for (const Target& target : all_targets()) {
    const Arch arch = *arch_of(target);
    for (int head_size = 16; head_size <= 256; head_size += 8) {
      for (const int group_size : {1, 2, 3, 7, 8, 9, 16, 17, 24, 32, 63, 64, 71, 100, 127, 128}) {
        const KernelSpec spec{.head_size = head_size, .group_size = group_size};
        const Result<KernelConfig> config = plan(spec, target);
        ASSERT_TRUE(config) << config.status().to_string();
        expect_sound(*config, arch);
        ++plans;
      }
    }
  }
  EXPECT_EQ(plans, 22 * 31 * 16);
}

// Little's law with 1 us of latency, twice over, for every shape that real models have.
TEST(PlannerTest, RealShapesKeepTwiceTheBandwidthLatencyProductInFlight) {
  const std::pair<int, int> shapes[] = {{128, 4}, {128, 8}, {128, 16}, {64, 4},  {64, 3},
                                        {128, 7}, {128, 1}, {256, 2},  {128, 2}, {256, 4},
                                        {64, 8},  {80, 1},  {96, 1},   {64, 71}, {64, 1}};
  for (const Arch& arch : known_archs()) {
    const Target target{TargetKind::kCuda, arch.sm, TargetVariant::kPlain};
    for (const auto& [head_size, group_size] : shapes) {
      const auto config = plan({.head_size = head_size, .group_size = group_size}, target);
      ASSERT_TRUE(config);
      const DecodeConfig& c = config->decode;
      const int bytes =
          c.min_ctas_per_sm * (c.num_stages - 1) * config->tile_tokens() * 4 * c.head_size;
      EXPECT_GE(bytes, 2 * arch.bandwidth_bytes_per_us)
          << target.to_string() << " head_size " << head_size << " group_size " << group_size;
    }
  }
}

TEST(PlannerTest, SmallGroupsSplitTokensAndLargeOnesHeads) {
  const Target target = *parse_target("sm_90a");
  EXPECT_EQ(plan({.head_size = 128, .group_size = 8}, target)->decode.head_warps, 1);
  EXPECT_EQ(plan({.head_size = 128, .group_size = 16}, target)->decode.head_warps, 1);
  EXPECT_GT(plan({.head_size = 64, .group_size = 71}, target)->decode.head_warps, 1);
  EXPECT_GT(plan({.head_size = 256, .group_size = 128}, target)->decode.head_warps, 1);
}

TEST(PlannerTest, TheHostTakesTheConfigurationOfTheArchitectureItStandsFor) {
  for (const Arch& arch : known_archs()) {
    const auto gpu = plan({}, {TargetKind::kCuda, arch.sm, TargetVariant::kPlain});
    const auto host = plan({}, Target::host(arch.sm));
    ASSERT_TRUE(gpu && host);
    EXPECT_EQ(gpu->decode.shared_bytes, host->decode.shared_bytes);
    EXPECT_EQ(gpu->decode.num_stages, host->decode.num_stages);
    EXPECT_EQ(gpu->num_warps(), host->num_warps());
  }
}

TEST(ExplainTest, TheFirstCandidateIsThePlanAndEachOtherSaysWhatItLostBy) {
  const KernelSpec spec{.head_size = 128, .group_size = 4};
  const Target target = *parse_target("sm_90a");
  const auto explanation = explain(spec, target);
  ASSERT_TRUE(explanation);
  ASSERT_GT(explanation->candidates.size(), 10u);
  const auto config = plan(spec, target);
  EXPECT_EQ(explanation->candidates[0].config.decode.shared_bytes, config->decode.shared_bytes);
  EXPECT_TRUE(explanation->candidates[0].reason.empty());
  for (size_t i = 1; i < explanation->candidates.size(); ++i) {
    EXPECT_FALSE(explanation->candidates[i].reason.empty()) << i;
  }
  const std::string text = explanation->to_string();
  EXPECT_THAT(text, HasSubstr(canonical_text(spec) + " for sm_90a"));
  EXPECT_THAT(text, HasSubstr("chosen"));
  EXPECT_THAT(text, HasSubstr("B per CTA > 232448 B"));
}

TEST(ExplainTest, AnIllegalSpecIsRefusedAsByValidate) {
  EXPECT_EQ(explain({.head_size = 100}, Target::host()).status().message(),
            validate({.head_size = 100}).message());
}

}  // namespace
}  // namespace pagejit
