#include "tools/plot/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace pagejit::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

// Python's parser, which knows nothing of how the text was made.
bool is_well_formed(const std::string& svg) {
  FILE* python = popen(
      "python3 -c 'import sys, xml.dom.minidom; "
      "xml.dom.minidom.parseString(sys.stdin.buffer.read())'",
      "w");
  if (python == nullptr) return false;
  const bool is_written = fwrite(svg.data(), 1, svg.size(), python) == svg.size();
  return pclose(python) == 0 && is_written;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Chart roofline() {
  Chart chart;
  chart.title = "Roofline of an <H200> & \"others\"";
  chart.x = {.title = "FLOP per byte", .scale = Scale::kLogarithmic};
  chart.y = {.title = "TFLOP/s", .scale = Scale::kLogarithmic};
  chart.series.push_back({.name = "limit", .points = {{1, 4.8}, {206, 989}, {1000, 989}}});
  chart.series.push_back({.name = "kernels", .line = false, .points = {{4, 19.2, "decode <1>"}}});
  return chart;
}

TEST(SvgChartTest, LinesPointsAxesAndLegendAreThereAndEscaped) {
  const std::string svg = to_svg(roofline(), SvgPlace::kOwnFile);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, "<path"), 1);
  EXPECT_EQ(count_of(svg, "<circle"), 1);
  for (const char* text : {"Roofline of an &lt;H200&gt; &amp; &quot;others&quot;", "FLOP per byte",
                           "TFLOP/s", ">limit<", ">kernels<", "decode &lt;1&gt;", ">100<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr("<H200>")));
  EXPECT_EQ(svg, to_svg(roofline(), SvgPlace::kOwnFile));
}

TEST(SvgChartTest, InAPageThereIsNoAddress) {
  EXPECT_THAT(to_svg(roofline(), SvgPlace::kOwnFile), HasSubstr("xmlns="));
  EXPECT_THAT(to_svg(roofline(), SvgPlace::kInPage), Not(HasSubstr("http")));
}

TEST(SvgChartTest, PointsLieWhereTheirValuesAre) {
  Chart chart;
  chart.x = {.min = 0, .max = 10};
  chart.y = {.scale = Scale::kLogarithmic, .min = 1, .max = 100};
  chart.series.push_back({.points = {{0, 1}, {5, 10}, {10, 100}}});
  // The area is 70 to 700 by 36 to 354: its corners and its middle.
  EXPECT_THAT(to_svg(chart, SvgPlace::kInPage),
              HasSubstr("\"M70.0 354.0 L385.0 195.0 L700.0 36.0\""));
}

TEST(SvgChartTest, WhatAnAxisCannotShowIsLeftOut) {
  Chart chart = roofline();
  chart.series[1].points = {
      {0, 1}, {-1, 1}, {NAN, 1}, {1, std::numeric_limits<double>::infinity()}};
  const std::string svg = to_svg(chart, SvgPlace::kOwnFile);
  EXPECT_EQ(count_of(svg, "<circle"), 0);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("\"inf")));
  EXPECT_TRUE(is_well_formed(to_svg(Chart{}, SvgPlace::kOwnFile)));
  EXPECT_TRUE(is_well_formed(to_svg(BarChart{}, SvgPlace::kOwnFile)));
}

TEST(SvgBarChartTest, EachValueIsABarOfItsLength) {
  BarChart chart;
  chart.title = "Decode";
  chart.unit = "TB/s";
  chart.categories = {"GQA 32/8", "MHA <32>", "a name that is much too long to stand beside a bar"};
  chart.series = {{"before", {1, 2, NAN}}, {"after", {2, 4}}};
  chart.mark_name = "goal";
  chart.marks = {3.9, NAN};
  const std::string svg = to_svg(chart, SvgPlace::kOwnFile);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, "TB/s</title></rect>"), 4);
  EXPECT_EQ(count_of(svg, "class=\"a\" stroke-width=\"2\""), 1) << "one goal";
  EXPECT_THAT(svg, HasSubstr("MHA &lt;32&gt;"));
  EXPECT_THAT(svg, HasSubstr("a name that is much too long t…"));
  // From 210 to 660 for values from 0 to 4.16: 4 is 432.7 long, 2 is 216.3.
  EXPECT_THAT(svg, HasSubstr(" width=\"432.7\" height=\"11.0\""));
  EXPECT_EQ(count_of(svg, " width=\"216.3\" height=\"11.0\""), 2);
}

}  // namespace
}  // namespace pagejit::plot
