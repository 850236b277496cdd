#include "tools/plot/axis_ticks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagejit::plot {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(AxisRangeTest, HoldsAllValuesThatTheScaleCanShow) {
  const AxisRange linear = range_of({}, {3, 7, NAN, kInfinity});
  EXPECT_LE(linear.min, 3);
  EXPECT_GE(linear.max, 7);
  EXPECT_LT(linear.max, 8);
  const AxisRange logarithmic = range_of({.scale = Scale::kLogarithmic}, {-5, 0, 2, 2000});
  EXPECT_GT(logarithmic.min, 0);
  EXPECT_LE(logarithmic.min, 2);
  EXPECT_GE(logarithmic.max, 2000);
}

TEST(AxisRangeTest, FractionsGoByTheScale) {
  const AxisRange linear = {0, 10, Scale::kLinear};
  EXPECT_DOUBLE_EQ(linear.fraction(2.5), 0.25);
  const AxisRange logarithmic = {1, 10000, Scale::kLogarithmic};
  EXPECT_DOUBLE_EQ(logarithmic.fraction(10), 0.25);
  EXPECT_DOUBLE_EQ(logarithmic.fraction(10000), 1);
}

TEST(AxisRangeTest, NoValuesOneValueAndIllegalEndsGiveARangeAllTheSame) {
  for (const Scale scale : {Scale::kLinear, Scale::kLogarithmic}) {
    for (const Axis& axis : {Axis{.scale = scale}, Axis{.scale = scale, .min = 5, .max = 5},
                             Axis{.scale = scale, .min = 9, .max = -1},
                             Axis{.scale = scale, .min = NAN, .max = kInfinity}}) {
      for (const std::vector<double>& values : {std::vector<double>{}, {4}, {0}, {NAN}}) {
        const AxisRange range = range_of(axis, values);
        EXPECT_LT(range.min, range.max);
        EXPECT_TRUE(std::isfinite(range.fraction(range.max)));
        EXPECT_LE(ticks_of(range).size(), 30u);
      }
    }
  }
}

TEST(AxisTicksTest, AreRoundNumbers) {
  EXPECT_THAT(ticks_of({0, 10, Scale::kLinear}), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(ticks_of({0, 0.31, Scale::kLinear}),
              ElementsAre(0, DoubleEq(0.1), DoubleEq(0.2), DoubleEq(0.1 * 3)));
  EXPECT_THAT(ticks_of({1, 1000, Scale::kLogarithmic}), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(ticks_of({3, 60, Scale::kLogarithmic}), ElementsAre(5, 10, 20, 50));
  EXPECT_LE(ticks_of({1e-300, 1e300, Scale::kLogarithmic}).size(), 12u);
}

TEST(AxisTicksTest, AreWrittenForPeople) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(1500), "1,500");
  EXPECT_EQ(tick_text(-1234.5), "-1,234.5");
  EXPECT_EQ(tick_text(1000000), "1,000,000");
  EXPECT_EQ(tick_text(2e9), "2e+09");
  EXPECT_EQ(tick_text(1e-6), "1e-06");
}

}  // namespace
}  // namespace pagejit::plot
