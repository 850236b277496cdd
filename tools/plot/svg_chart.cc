#include "tools/plot/svg_chart.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "tools/plot/axis_ticks.h"
#include "tools/plot/xml_text.h"

namespace pagejit::plot {
namespace {

// All lengths are units of the picture, which is as wide as its surroundings let it be.
constexpr double kWidth = 720;
constexpr double kChartHeight = 400;
constexpr double kTitleHeight = 30;
constexpr double kLegendRow = 18;
constexpr double kLeft = 70;  // numbers and title of the vertical axis
constexpr double kRight = 20;
constexpr double kBottom = 46;  // numbers and title of the horizontal axis
constexpr double kBarLabels = 210;
constexpr double kBarHeight = 13;
constexpr double kBarGap = 9;       // between categories
constexpr double kLetterWidth = 7;  // of 12-unit letters, on the wide side
constexpr size_t kMaxLabelLetters = 30;

// Okabe and Ito's colours, which people with any kind of colour vision tell apart, in an order that
// also differs in brightness.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

constexpr const char* kStyle =
    "<style>.pj-chart{font:12px system-ui,sans-serif;color:#222;background:#fff;max-width:100%;"
    "height:auto}"
    ".pj-chart text{fill:currentColor}.pj-chart .t{font-size:15px;font-weight:600}"
    ".pj-chart .g{stroke:currentColor;stroke-opacity:.15}.pj-chart .a{stroke:currentColor}"
    "@media (prefers-color-scheme:dark){.pj-chart{color:#ddd;background:#181818}}</style>\n";

// One decimal of a unit is finer than any screen.
std::string number(double value) {
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 1);
  return std::string(digits, end.ptr);
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + number(value) + "\"";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& more) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + " " + more + "/>\n";
}

// anchor: start, middle or end.
std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const std::string& more = "") {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\"" +
         more + ">" + escape_xml(text) + "</text>\n";
}

std::string colour_of(size_t series) { return kColours[series % kColours.size()]; }

std::string shortened(const std::string& text, size_t letters) {
  // By characters, not bytes, so that none is cut in two.
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xc0) == 0x80) continue;
    if (++count > letters) return text.substr(0, i) + "…";
  }
  return text;
}

std::string open_svg(double height, const std::string& title, SvgPlace place) {
  const char* space = place == SvgPlace::kOwnFile ? " xmlns=\"http://www.w3.org/2000/svg\"" : "";
  return std::string("<svg") + space + " class=\"pj-chart\" role=\"img\" viewBox=\"0 0 " +
         number(kWidth) + " " + number(height) + "\"" + attribute("width", kWidth) + ">\n<title>" +
         escape_xml(title) + "</title>\n" + kStyle +
         text_at(kWidth / 2, 20, "middle", title, " class=\"t\"");
}

struct LegendEntry {
  std::string name;
  std::string colour;
};

// In rows below the title, as many beside each other as fit. Adds their height to *top.
std::string legend(const std::vector<LegendEntry>& entries, double* top) {
  if (entries.empty()) return "";
  constexpr double kSwatch = 14;
  std::string text;
  double x = kLeft;
  double y = *top + kLegendRow / 2;
  for (const LegendEntry& entry : entries) {
    const std::string name = shortened(entry.name, 2 * kMaxLabelLetters);
    const double width = kSwatch + 6 + kLetterWidth * static_cast<double>(name.size()) + 14;
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      y += kLegendRow;
    }
    text += "<rect" + attribute("x", x) + attribute("y", y - 5) + attribute("width", kSwatch) +
            attribute("height", 10) + " fill=\"" + entry.colour + "\"/>\n" +
            text_at(x + kSwatch + 6, y + 4, "start", name);
    x += width;
  }
  *top = y + kLegendRow / 2 + 4;
  return text;
}

// The rectangle that the values are drawn in.
struct Area {
  double left, top, right, bottom;
  AxisRange x, y;

  double x_of(double value) const { return left + x.fraction(value) * (right - left); }
  double y_of(double value) const { return bottom - y.fraction(value) * (bottom - top); }
};

std::string horizontal_axis(const Area& area, const std::string& title) {
  std::string text;
  for (const double tick : ticks_of(area.x)) {
    const double x = area.x_of(tick);
    text += line(x, area.top, x, area.bottom, "class=\"g\"") +
            text_at(x, area.bottom + 16, "middle", tick_text(tick));
  }
  return text + line(area.left, area.bottom, area.right, area.bottom, "class=\"a\"") +
         text_at((area.left + area.right) / 2, area.bottom + 36, "middle", title);
}

std::string vertical_axis(const Area& area, const std::string& title) {
  std::string text;
  for (const double tick : ticks_of(area.y)) {
    const double y = area.y_of(tick);
    text += line(area.left, y, area.right, y, "class=\"g\"") +
            text_at(area.left - 6, y + 4, "end", tick_text(tick));
  }
  const double middle = (area.top + area.bottom) / 2;
  return text + line(area.left, area.top, area.left, area.bottom, "class=\"a\"") +
         text_at(14, middle, "middle", title,
                 " transform=\"rotate(-90 14.0 " + number(middle) + ")\"");
}

std::string mark(const Area& area, const Point& point, const std::string& colour) {
  const double x = area.x_of(point.x);
  const double y = area.y_of(point.y);
  std::string text = "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", 5) +
                     " fill=\"" + colour + "\"><title>" + escape_xml(point.label) + " (" +
                     tick_text(point.x) + ", " + tick_text(point.y) + ")</title></circle>\n";
  if (point.label.empty()) return text;
  const bool is_right = x > (area.left + area.right) * 0.6;
  return text + text_at(is_right ? x - 9 : x + 9, y - 7, is_right ? "end" : "start",
                        shortened(point.label, 2 * kMaxLabelLetters));
}

std::string draw(const Area& area, const Series& series, const std::string& colour) {
  std::string path;
  std::string marks;
  for (const Point& point : series.points) {
    if (!area.x.can_show(point.x) || !area.y.can_show(point.y)) continue;
    path +=
        (path.empty() ? "M" : " L") + number(area.x_of(point.x)) + " " + number(area.y_of(point.y));
    if (!series.line || !point.label.empty()) marks += mark(area, point, colour);
  }
  if (!series.line || path.empty()) return marks;
  return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"" +
         (series.dashed ? " stroke-dasharray=\"6 4\"" : "") + "/>\n" + marks;
}

double value_at(const std::vector<double>& values, size_t i) {
  const double value = i < values.size() ? values[i] : -1;
  return std::isfinite(value) ? value : -1;  // no bar
}

}  // namespace

std::string to_svg(const Chart& chart, SvgPlace place) {
  std::string svg = open_svg(kChartHeight, chart.title, place);
  std::vector<LegendEntry> entries;
  std::vector<double> xs;
  std::vector<double> ys;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    if (!series.name.empty()) entries.push_back({series.name, colour_of(i)});
    for (const Point& point : series.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  double top = kTitleHeight;
  svg += legend(entries, &top);
  const Area area = {kLeft,
                     top + 6,
                     kWidth - kRight,
                     kChartHeight - kBottom,
                     range_of(chart.x, xs),
                     range_of(chart.y, ys)};
  svg += horizontal_axis(area, chart.x.title) + vertical_axis(area, chart.y.title);
  // An inner <svg> cuts off what lies beyond given ends; a <clipPath> would need a name that no
  // other picture of the page has.
  svg += "<svg" + attribute("x", area.left) + attribute("y", area.top) +
         attribute("width", area.right - area.left) + attribute("height", area.bottom - area.top) +
         " viewBox=\"" + number(area.left) + " " + number(area.top) + " " +
         number(area.right - area.left) + " " + number(area.bottom - area.top) + "\">\n";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    svg += draw(area, chart.series[i], colour_of(i));
  }
  return svg + "</svg>\n</svg>\n";
}

std::string to_svg(const BarChart& chart, SvgPlace place) {
  std::vector<LegendEntry> entries;
  std::vector<double> values = {0};
  for (size_t i = 0; i < chart.series.size(); ++i) {
    if (!chart.series[i].name.empty()) entries.push_back({chart.series[i].name, colour_of(i)});
    for (size_t c = 0; c < chart.categories.size(); ++c) {
      values.push_back(std::max(0.0, value_at(chart.series[i].values, c)));
    }
  }
  for (size_t c = 0; c < chart.categories.size(); ++c)
    values.push_back(std::max(0.0, value_at(chart.marks, c)));
  if (!chart.marks.empty() && !chart.mark_name.empty()) {
    entries.push_back({chart.mark_name, "currentColor"});
  }
  double top = kTitleHeight;
  const std::string legend_text = legend(entries, &top);
  const double category_height =
      static_cast<double>(std::max<size_t>(chart.series.size(), 1)) * kBarHeight + kBarGap;
  const double bottom = top + 6 + static_cast<double>(chart.categories.size()) * category_height;
  const Axis axis = {.title = chart.unit, .min = 0};
  const Area area = {kBarLabels, top + 6, kWidth - kRight - 40, bottom, range_of(axis, values), {}};

  std::string svg = open_svg(bottom + kBottom, chart.title, place) + legend_text;
  svg += horizontal_axis(area, chart.unit);
  double y = area.top + kBarGap / 2;
  for (size_t c = 0; c < chart.categories.size(); ++c) {
    const double height = category_height - kBarGap;
    svg += text_at(kBarLabels - 8, y + height / 2 + 4, "end",
                   shortened(chart.categories[c], kMaxLabelLetters));
    for (size_t i = 0; i < chart.series.size(); ++i) {
      const double value = value_at(chart.series[i].values, c);
      if (value < 0) continue;
      const double bar_top = y + static_cast<double>(i) * kBarHeight;
      svg += "<rect" + attribute("x", area.left) + attribute("y", bar_top) +
             attribute("width", area.x_of(value) - area.left) +
             attribute("height", kBarHeight - 2) + " fill=\"" + colour_of(i) + "\"><title>" +
             escape_xml(chart.categories[c] + ", " + chart.series[i].name) + ": " +
             tick_text(value) + " " + escape_xml(chart.unit) + "</title></rect>\n" +
             text_at(area.x_of(value) + 4, bar_top + 10, "start", tick_text(value));
    }
    if (const double goal = value_at(chart.marks, c); goal >= 0) {
      const double x = area.x_of(goal);
      svg += line(x, y - 3, x, y + height + 1, "class=\"a\" stroke-width=\"2\"");
    }
    y += category_height;
  }
  svg += line(area.left, area.top, area.left, area.bottom, "class=\"a\"");
  return svg + "</svg>\n";
}

}  // namespace pagejit::plot
