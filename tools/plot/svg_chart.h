// Charts as SVG text: points and lines over two axes, linear or logarithmic, and horizontal bars.
// Not a plotting library: one size, one style, readable on light and on dark ground, no scripts and
// no reference to anything outside. Any text is escaped, and values that an axis cannot show are
// left out. Thread-safety: plain values and free functions without state.
//
//   plot::Chart chart;
//   chart.title = "Roofline";
//   chart.x = {.title = "FLOP per byte", .scale = plot::Scale::kLogarithmic};
//   chart.y = {.title = "TFLOP/s", .scale = plot::Scale::kLogarithmic};
//   chart.series.push_back({.name = "limit", .points = {{1, 4.8}, {206, 989}, {1000, 989}}});
//   chart.series.push_back({.name = "kernel", .line = false, .points = {{4, 19.2, "decode"}}});
//   const std::string svg = plot::to_svg(chart, plot::SvgPlace::kOwnFile);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagejit::plot {

enum class Scale : uint8_t { kLinear, kLogarithmic };

enum class SvgPlace : uint8_t {
  kOwnFile,  // with the XML name space, without which a file is no picture
  kInPage,   // inside an HTML page, where none is needed
};

struct Axis {
  std::string title = "";  // with the unit
  Scale scale = Scale::kLinear;
  // The ends; nothing: chosen from the values. A logarithmic axis needs positive ones; ends that
  // are not legal are chosen too.
  std::optional<double> min = std::nullopt;
  std::optional<double> max = std::nullopt;
};

struct Point {
  double x = 0;
  double y = 0;
  std::string label = "";  // drawn beside the point; also what is said where the pointer rests
};

struct Series {
  std::string name = "";  // in the legend; "": not there
  bool line = true;       // joined in their order; else each point is marked
  bool dashed = false;
  std::vector<Point> points = {};
};

struct Chart {
  std::string title = "";
  Axis x;
  Axis y;
  std::vector<Series> series;
};

// Horizontal bars: for each category one of each series, from 0. The unit is written below the
// axis.
struct BarSeries {
  std::string name = "";
  std::vector<double> values = {};  // by category; missing ones, NaN and negative ones: no bar
};

struct BarChart {
  std::string title = "";
  std::string unit = "";                // "GB/s"
  std::vector<std::string> categories;  // beside the bars, shortened where too long
  std::vector<BarSeries> series;
  // Of each category, a mark across its bars: a goal, say. By category; NaN: none.
  std::string mark_name = "";
  std::vector<double> marks = {};
};

// A whole <svg> element that scales with its surroundings. Deterministic: the same chart gives the
// same bytes on every machine.
std::string to_svg(const Chart& chart, SvgPlace place);
std::string to_svg(const BarChart& chart, SvgPlace place);

}  // namespace pagejit::plot
