#include "generator/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/arch.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const Arch& arch : known_archs()) {
    targets.push_back({TargetKind::kCuda, arch.sm, TargetVariant::kPlain});
    targets.push_back(Target::host(arch.sm));
  }
  return targets;
}

// A spec of 16-bit floats that the target serves: f16 where it has no products of bf16.
KernelSpec served(KernelSpec spec, int sm) {
  if (sm < kFirstAsyncCopySm) {
    spec.q_dtype = spec.kv_dtype = spec.out_dtype = DataType::kFloat16;
  }
  return spec;
}

// What every chosen configuration must satisfy, whatever the spec.
void expect_sound(const KernelConfig& config, const Arch& arch) {
  const AttentionConfig& c = config.attention;
  SCOPED_TRACE(canonical_text(config.spec) + " for " + config.target.to_string());
  EXPECT_GE(c.row_warps * c.row_tiles * 8, c.group_size);
  // No idle warp, and no idle tile in more than the last one.
  EXPECT_LT((c.row_warps - 1) * c.row_tiles * 8, c.group_size);
  if (arch.has_async_copy()) {
    EXPECT_GE(c.num_stages, 2);
  } else {
    EXPECT_EQ(c.num_stages, 1);
  }
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
  int refused = 0;
  for (const Target& target : all_targets()) {
    const Arch arch = *arch_of(target);
    for (int head_size = 16; head_size <= 256; head_size += 8) {
      for (const int group_size : {1, 2, 3, 7, 8, 9, 16, 17, 24, 32, 63, 64, 71, 100, 127, 128}) {
        const KernelSpec spec =
            served({.head_size = head_size, .group_size = group_size}, target.sm);
        const Result<KernelConfig> config = plan(spec, target);
        // 64 KiB of shared memory do not hold all rows of q, nor do the registers.
        if (target.sm == 75 && head_size > 192 && group_size > 64 && !config) {
          EXPECT_EQ(config.status().code(), StatusCode::kUnsupported);
          EXPECT_THAT(config.status().message(), HasSubstr("fits " + target.to_string()));
          ++refused;
          continue;
        }
        ASSERT_TRUE(config) << config.status().to_string();
        expect_sound(*config, arch);
        ++plans;
      }
    }
  }
  EXPECT_EQ(plans + refused, 24 * 31 * 16);
  EXPECT_EQ(refused, 2 * 24);
}

// Little's law with 1 us of latency, twice over, for every shape that real models have.
TEST(PlannerTest, RealShapesKeepTwiceTheBandwidthLatencyProductInFlight) {
  const std::pair<int, int> shapes[] = {{128, 4}, {128, 8}, {128, 16}, {64, 4},  {64, 3},
                                        {128, 7}, {128, 1}, {256, 2},  {128, 2}, {256, 4},
                                        {64, 8},  {80, 1},  {96, 1},   {64, 71}, {64, 1}};
  for (const Arch& arch : known_archs()) {
    const Target target{TargetKind::kCuda, arch.sm, TargetVariant::kPlain};
    for (const auto& [head_size, group_size] : shapes) {
      const auto config =
          plan(served({.head_size = head_size, .group_size = group_size}, arch.sm), target);
      ASSERT_TRUE(config);
      const AttentionConfig& c = config->attention;
      // Where a warp waits for its own copies all may be loading at once; nothing is twice over.
      const int tiles = arch.has_async_copy() ? c.num_stages - 1 : 2;
      const int bytes = c.min_ctas_per_sm * tiles * config->tile_tokens() * 4 * c.head_size;
      EXPECT_GE(bytes, 2 * arch.bandwidth_bytes_per_us)
          << target.to_string() << " head_size " << head_size << " group_size " << group_size;
    }
  }
}

TEST(PlannerTest, SmallGroupsSplitTokensAndLargeOnesHeads) {
  const Target target = *parse_target("sm_90a");
  EXPECT_EQ(plan({.head_size = 128, .group_size = 8}, target)->attention.row_warps, 1);
  EXPECT_EQ(plan({.head_size = 128, .group_size = 16}, target)->attention.row_warps, 1);
  EXPECT_GT(plan({.head_size = 64, .group_size = 71}, target)->attention.row_warps, 1);
  EXPECT_GT(plan({.head_size = 256, .group_size = 128}, target)->attention.row_warps, 1);
}

TEST(PlannerTest, RaggedTilesHold16To128RowsAndAsManyAsQueriesNeed) {
  for (const Arch& arch : known_archs()) {
    const Target target{TargetKind::kCuda, arch.sm, TargetVariant::kPlain};
    for (int head_size = 16; head_size <= 256; head_size += 8) {
      for (const int group_size : {1, 3, 4, 8, 16, 71, 128}) {
        KernelSpec spec{.queries = QueryLengths::kFew,
                        .head_size = head_size,
                        .group_size = group_size,
                        .causality = Causality::kCausal};
        spec = served(spec, arch.sm);
        const auto few = plan(spec, target);
        ASSERT_TRUE(few) << few.status().to_string();
        // Four query tokens, as in speculative decoding, are one tile as far as 128 rows go.
        const int few_rows = pagejit_shared::tile_rows(few->attention);
        // Half of that where neither the registers nor 64 KiB of shared memory hold q.
        const int most_rows = arch.sm == 75 && head_size > 192 ? 64 : 128;
        EXPECT_GE(few_rows, std::min(most_rows, std::max(16, 4 * group_size)))
            << canonical_text(spec);
        EXPECT_LE(few_rows, 144) << "whole tiles of several warps may be a little more";
        spec.queries = QueryLengths::kMany;
        const auto many = plan(spec, target);
        ASSERT_TRUE(many) << many.status().to_string();
        const int many_rows = pagejit_shared::tile_rows(many->attention);
        EXPECT_TRUE(many_rows == 64 || many_rows == 128) << canonical_text(spec);
        // A prefix of many sequences is read once for each tile.
        spec.queries = QueryLengths::kShared;
        const auto shared = plan(spec, target);
        ASSERT_TRUE(shared) << shared.status().to_string();
        EXPECT_EQ(pagejit_shared::tile_rows(shared->attention), most_rows) << canonical_text(spec);
        EXPECT_TRUE(shared->attention.splits_row_tiles && !many->attention.splits_row_tiles);
      }
    }
  }
}

// All rows of a group are in one CTA where queries are one.
TEST(PlannerTest, DecodeThatDoesNotFitIsRefusedWithWhatFits) {
  constexpr auto kF32 = DataType::kFloat32;
  KernelSpec spec{
      .q_dtype = kF32, .kv_dtype = kF32, .out_dtype = kF32, .head_size = 128, .group_size = 71};
  const Target target = *parse_target("sm_90a");
  EXPECT_THAT(plan(spec, target).status().message(),
              AllOf(HasSubstr("no tile configuration"), HasSubstr("; queries few, which")));
  spec.queries = QueryLengths::kFew;
  spec.causality = Causality::kCausal;
  EXPECT_TRUE(plan(spec, target));
}

// What README.md says of K and V of f32.
TEST(PlannerTest, DecodeOverF32ServesLargeGroupsOfSmallHeads) {
  constexpr auto kF32 = DataType::kFloat32;
  for (const Target& target : all_targets()) {
    if (!arch_of(target)->has_bf16_products()) continue;
    for (int head_size = 8; head_size <= 256; head_size += 8) {
      for (const int group_size : {1, 16, 64, 71, 128}) {
        KernelSpec spec{.q_dtype = kF32,
                        .kv_dtype = kF32,
                        .out_dtype = kF32,
                        .head_size = head_size,
                        .group_size = group_size};
        if (group_size <= 16 || head_size <= 80 || (group_size <= 64 && head_size <= 208)) {
          EXPECT_TRUE(plan(spec, target)) << head_size << ", " << group_size;
        }
        spec.queries = QueryLengths::kFew;
        spec.causality = Causality::kCausal;
        EXPECT_TRUE(plan(spec, target)) << head_size << ", " << group_size;
      }
    }
  }
}

TEST(PlannerTest, TheHostTakesTheConfigurationOfTheArchitectureItStandsFor) {
  for (const Arch& arch : known_archs()) {
    const KernelSpec spec = served({}, arch.sm);
    const auto gpu = plan(spec, {TargetKind::kCuda, arch.sm, TargetVariant::kPlain});
    const auto host = plan(spec, Target::host(arch.sm));
    ASSERT_TRUE(gpu && host);
    EXPECT_EQ(gpu->attention.shared_bytes, host->attention.shared_bytes);
    EXPECT_EQ(gpu->attention.num_stages, host->attention.num_stages);
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
  EXPECT_EQ(explanation->candidates[0].config.attention.shared_bytes,
            config->attention.shared_bytes);
  EXPECT_TRUE(explanation->candidates[0].reason.empty());
  for (size_t i = 1; i < explanation->candidates.size(); ++i) {
    EXPECT_FALSE(explanation->candidates[i].reason.empty()) << i;
  }
  const std::string text = explanation->to_string();
  EXPECT_THAT(text, HasSubstr(canonical_text(spec) + " for sm_90a"));
  EXPECT_THAT(text, HasSubstr("chosen"));
  EXPECT_THAT(text, HasSubstr("B per CTA > 232448 B"));
}

// 64 rows over latent rows of 576 elements, of which 512 are V: bytes and operations are exact, and
// shared memory is what the model says of 64 rows (templates/attention/latent.md counts it).
TEST(ExplainTest, TheChoiceHasItsBytesOperationsAndLimit) {
  const KernelSpec spec{.head_size = 576, .head_size_v = 512, .group_size = 128, .latent = true};
  const std::string text = explain(spec, *parse_target("sm_90a"))->to_string();
  EXPECT_THAT(text,
              HasSubstr("A tile of 64 rows and 32 tokens: 36864 bytes of K and V, 4.46 MFLOP"));
  EXPECT_THAT(text, HasSubstr("(H200: 4.2 TB/s / 132 SMs)"));
  EXPECT_THAT(text, HasSubstr("shared memory is the limit"));
}

TEST(ExplainTest, TargetsWithoutAsynchronousCopiesSaySo) {
  constexpr const char* kSentence = "No speed was ever measured on this target.";
  const KernelSpec spec = served({.group_size = 4}, 75);
  for (const char* target : {"sm_75", "host_75"}) {
    EXPECT_THAT(explain(spec, *parse_target(target))->to_string(), HasSubstr(kSentence));
  }
  EXPECT_THAT(explain(spec, *parse_target("sm_80"))->to_string(),
              ::testing::Not(HasSubstr(kSentence)));
}

TEST(ExplainTest, AnIllegalSpecIsRefusedAsByValidate) {
  EXPECT_EQ(explain({.head_size = 100}, Target::host()).status().message(),
            validate({.head_size = 100}).message());
}

}  // namespace
}  // namespace pagejit
