#include "runtime/target_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagejit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names(int sm) {
  std::vector<std::string> result;
  Result<std::vector<Target>> ladder = target_ladder(sm);
  EXPECT_TRUE(ladder) << ladder.status().to_string();
  if (!ladder) return result;
  for (const Target& target : *ladder) result.push_back(target.to_string());
  return result;
}

TEST(TargetLadderTest, AmpereAndAdaTakePlainTargetsDownwards) {
  EXPECT_THAT(names(80), ElementsAre("sm_80"));
  EXPECT_EQ(names(86).front(), "sm_86");
  EXPECT_EQ(names(86).back(), "sm_80");
  EXPECT_EQ(names(89).front(), "sm_89");
  EXPECT_THAT(names(89), Contains("sm_86"));
}

TEST(TargetLadderTest, TuringTakesItsOwnTarget) {
  EXPECT_THAT(names(75), ElementsAre("sm_75"));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 75, TargetVariant::kPlain}, 80));
}

TEST(TargetLadderTest, HopperTakesItsExactTargetFirst) {
  EXPECT_THAT(names(90), ElementsAre("sm_90a", "sm_90"));
}

TEST(TargetLadderTest, BlackwellTakesExactThenFamilyThenPlain) {
  EXPECT_THAT(names(100), ElementsAre("sm_100a", "sm_100f", "sm_100"));
  EXPECT_EQ(names(103).front(), "sm_103a");
  EXPECT_THAT(names(103), Contains("sm_100f"));
  EXPECT_EQ(names(103).back(), "sm_100");
  EXPECT_THAT(names(121), ElementsAre("sm_121a", "sm_121f", "sm_120f", "sm_121", "sm_120"));
}

TEST(TargetLadderTest, JetsonClassTakesOnlyItsOwnNumber) {
  EXPECT_THAT(names(87), ElementsAre("sm_87"));
  EXPECT_THAT(names(110), ElementsAre("sm_110a", "sm_110f", "sm_110"));
  EXPECT_THAT(names(101), ElementsAre("sm_101a", "sm_101f", "sm_101"));
}

TEST(TargetLadderTest, NobodyElseTakesJetsonTargets) {
  for (int sm : {88, 89}) EXPECT_THAT(names(sm), Not(Contains("sm_87")));
  for (int sm : {102, 103}) {
    EXPECT_THAT(names(sm), Not(Contains("sm_101")));
    EXPECT_THAT(names(sm), Not(Contains("sm_101f")));
  }
  for (int sm : {111, 112}) EXPECT_THAT(names(sm), Not(Contains("sm_110")));
}

TEST(TargetLadderTest, PtxIsOfThePlainTargetsThatAreKnownDownwards) {
  const auto ptx_names = [](int sm) {
    std::vector<std::string> result;
    for (const Target& target : ptx_ladder(sm)) result.push_back(target.to_string());
    return result;
  };
  EXPECT_THAT(ptx_names(75), ElementsAre("compute_75"));
  EXPECT_THAT(ptx_names(90), ElementsAre("compute_90", "compute_89", "compute_88", "compute_86",
                                         "compute_80", "compute_75"));
  EXPECT_EQ(ptx_names(130).front(), "compute_121");
  EXPECT_EQ(ptx_names(87).front(), "compute_87");
  EXPECT_THAT(ptx_names(89), Not(Contains("compute_87")));
  EXPECT_THAT(ptx_names(72), ElementsAre());
  for (int sm = 75; sm <= 139; ++sm) {
    for (const Target& target : ptx_ladder(sm)) EXPECT_TRUE(runs_on(target, sm));
  }
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 90, TargetVariant::kPtx}, 89));
}

TEST(TargetLadderTest, OlderGpusAreUnsupportedWithASentence) {
  for (int sm : {35, 50, 61, 70, 72, 74}) {
    Result<std::vector<Target>> ladder = target_ladder(sm);
    ASSERT_FALSE(ladder) << sm;
    EXPECT_EQ(ladder.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(ladder.status().message(), HasSubstr("7.5 or later is needed"));
  }
  EXPECT_THAT(target_ladder(72).status().message(), HasSubstr("compute capability 7.2"));
}

TEST(TargetLadderTest, EveryStepRunsOnItsGpu) {
  for (int sm = 75; sm <= 139; ++sm) {
    const Result<std::vector<Target>> ladder = target_ladder(sm);
    for (const Target& target : *ladder) {
      EXPECT_TRUE(runs_on(target, sm)) << target.to_string() << " on " << sm;
    }
  }
}

TEST(TargetLadderTest, RunsOnFollowsTheVariants) {
  EXPECT_FALSE(runs_on(Target::host(90), 90));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 90, TargetVariant::kExact}, 100));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 100, TargetVariant::kExact}, 103));
  EXPECT_TRUE(runs_on({TargetKind::kCuda, 100, TargetVariant::kFamily}, 103));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 103, TargetVariant::kFamily}, 100));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 80, TargetVariant::kPlain}, 90));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 80, TargetVariant::kPlain}, 87));
  EXPECT_FALSE(runs_on({TargetKind::kCuda, 87, TargetVariant::kPlain}, 89));
}

}  // namespace
}  // namespace pagejit
