#include "tools/tune/tune_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/bench/quartiles.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

RoundTimes steady(std::vector<double> problems) {
  RoundTimes times;
  for (const double us : problems) times.push_back(std::vector<double>(5, us));
  return times;
}

TEST(TuneChoiceTest, MedianAndSpreadAreThoseOfTheRounds) {
  EXPECT_DOUBLE_EQ(median({5, 1, 100, 3, 4}), 4);
  EXPECT_DOUBLE_EQ(median({1, 2}), 1.5);
  EXPECT_DOUBLE_EQ(relative_spread({1, 2, 3, 4, 5}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(relative_spread({7}), 0);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(TuneChoiceTest, TheFastestIsTaken) {
  const TuneVerdict verdict =
      choose_candidate({steady({100, 10}), steady({90, 9}), steady({80, 8}), steady({110, 11})});
  EXPECT_EQ(verdict.choice, 2u);
  EXPECT_DOUBLE_EQ(verdict.ratios[2], 0.8);
  EXPECT_DOUBLE_EQ(verdict.noise[2], kLeastGain);
  EXPECT_THAT(verdict.sentence, HasSubstr("20.0 % less time"));
}

TEST(TuneChoiceTest, WhatIsWithinTwoPercentIsNoGain) {
  EXPECT_EQ(choose_candidate({steady({100}), steady({98.1})}).choice, 0u);
  EXPECT_EQ(choose_candidate({steady({100}), steady({97.9})}).choice, 1u);
  EXPECT_THAT(choose_candidate({steady({100}), steady({98.1})}).sentence, HasSubstr("noise"));
  EXPECT_THAT(choose_candidate({steady({100}), steady({101})}).sentence,
              HasSubstr("nothing was faster"));
}

TEST(TuneChoiceTest, WhatIsWithinTheSpreadOfBothIsNoGain) {
  // Quartiles 95 and 105: 10 % of the median; of the other one, 6 %.
  const RoundTimes planned = {{90, 95, 100, 105, 110}};
  const RoundTimes other = {{84.6, 87.3, 90, 92.7, 95.4}};
  const TuneVerdict verdict = choose_candidate({planned, other});
  EXPECT_NEAR(verdict.noise[1], 0.16, 1e-9);
  EXPECT_EQ(verdict.choice, 0u) << "10 % less, of 16 % noise";
  EXPECT_EQ(choose_candidate({steady({100}), other}).choice, 1u) << "10 % less, of 6 % noise";
}

TEST(TuneChoiceTest, OutliersOfARoundChangeNothing) {
  const RoundTimes planned = {{100, 100, 100, 100, 900}};
  const RoundTimes other = {{90, 5000, 90, 90, 90}};
  EXPECT_EQ(choose_candidate({planned, other}).choice, 1u);
}

TEST(TuneChoiceTest, WhatIsSlowerOnAProblemIsNotTaken) {
  const TuneVerdict verdict =
      choose_candidate({steady({100, 100}), steady({50, 103}), steady({90, 90})});
  EXPECT_LT(verdict.ratios[1], verdict.ratios[2]);
  EXPECT_EQ(verdict.choice, 2u);
  const TuneVerdict alone = choose_candidate({steady({100, 100}), steady({50, 103})});
  EXPECT_EQ(alone.choice, 0u);
  EXPECT_THAT(alone.sentence, HasSubstr("slower on a problem"));
}

TEST(TuneChoiceTest, WhatWasNotTimedIsPassedOver) {
  const TuneVerdict verdict = choose_candidate({steady({100}), {}, steady({50})});
  EXPECT_EQ(verdict.choice, 2u);
  EXPECT_EQ(verdict.ratios[1], 0);
  EXPECT_THAT(choose_candidate({steady({100}), {}}).sentence, HasSubstr("nothing else was timed"));
}

}  // namespace
}  // namespace pagejit
