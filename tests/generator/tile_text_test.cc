#include "generator/tile_text.h"

#include <gtest/gtest.h>

#include <map>

#include "generator/planner.h"
#include "generator/renderer.h"

namespace pagejit {
namespace {

constexpr KernelSpec kSpecs[] = {
    {.group_size = 4},
    {.queries = QueryLengths::kFew, .causality = Causality::kCausal},
    {.queries = QueryLengths::kMany, .group_size = 8, .causality = Causality::kCausal},
    {.head_size = 576, .head_size_v = 512, .block_size = 64, .group_size = 16, .latent = true}};

TEST(TileTextTest, TextsTellTheCandidatesThatFitApart) {
  for (const char* target : {"sm_80", "sm_90a", "sm_120a"}) {
    for (const KernelSpec& spec : kSpecs) {
      const Result<PlanExplanation> explanation = explain(spec, *parse_target(target));
      ASSERT_TRUE(explanation) << explanation.status().to_string();
      std::map<std::string, std::string> sources;
      for (const PlanCandidate& candidate : explanation->candidates) {
        if (!candidate.fits) continue;
        const Result<KernelSource> source = render(candidate.config);
        ASSERT_TRUE(source);
        const auto [known, is_new] =
            sources.emplace(tile_text(candidate.config.attention), source->text);
        EXPECT_EQ(known->second, source->text) << known->first;
      }
      EXPECT_GT(sources.size(), 1u) << canonical_text(spec);
    }
  }
}

TEST(TileTextTest, TheChoiceIsFoundByItsText) {
  const Target target = *parse_target("sm_90a");
  for (const KernelSpec& spec : kSpecs) {
    const Result<KernelConfig> planned = plan(spec, target);
    ASSERT_TRUE(planned);
    const Result<KernelConfig> found = plan_tile(spec, target, tile_text(planned->attention));
    ASSERT_TRUE(found) << found.status().to_string();
    EXPECT_EQ(render(*found)->text, render(*planned)->text);
  }
}

TEST(TileTextTest, WhatDoesNotFitIsNotFound) {
  const Target target = *parse_target("sm_90a");
  const auto explained = explain(kSpecs[0], target);
  ASSERT_TRUE(explained);
  size_t refused = 0;
  for (const PlanCandidate& candidate : explained->candidates) {
    if (candidate.fits) continue;
    const auto found = plan_tile(kSpecs[0], target, tile_text(candidate.config.attention));
    EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
    ++refused;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(plan_tile(kSpecs[0], target, "").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(plan_tile({.group_size = 0}, target, "").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagejit
