#include "tools/bench/bench_svg.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "tools/plot/svg_chart.h"

namespace pagejit {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Quantity {
  const char* figure;
  const char* unit;
};

// What of a suite is drawn; null: percent of the goals.
const Quantity* quantity_of(const std::string& suite) {
  static constexpr Quantity kBandwidth = {"tb_per_s", "TB/s of K and V"};
  static constexpr Quantity kArithmetic = {"tflops", "TFLOP/s"};
  static constexpr Quantity kSpeedup = {"speedup", "times as fast as the flat kernel"};
  if (suite == "host" || suite == "store") return nullptr;
  if (suite == "prefill" || suite == "mixed") return &kArithmetic;
  return suite == "cascade" ? &kSpeedup : &kBandwidth;
}

// Cases of one suite may share a name.
std::string label_of(const BenchResult& result) {
  std::string label = result.name;
  for (const auto& [key, value] : result.shape.items()) {
    if (key != "num_seqs" && key != "seq_len" && key != "prefix_len" && key != "chunk_queries") {
      continue;
    }
    if (value.is_number() && value != 0) label += " " + value.dump();
  }
  return label;
}

void add_bar(const BenchResult& result, plot::BarChart* chart) {
  const Quantity* quantity = quantity_of(result.suite);
  chart->categories.push_back(label_of(result));
  const std::optional<double> limit =
      result.goal ? std::optional(result.goal->limit) : std::nullopt;
  if (quantity == nullptr) {
    const bool has_share = limit && *limit > 0;
    chart->series[0].values.push_back(has_share ? 100 * result.value / *limit : kNone);
    chart->marks.push_back(has_share ? 100 : kNone);
    return;
  }
  chart->series[0].values.push_back(result.figure(quantity->figure).value_or(kNone));
  chart->marks.push_back(limit && result.goal->figure == quantity->figure ? *limit : kNone);
}

struct SuiteChart {
  std::string suite;
  plot::BarChart chart;
};

SuiteChart* chart_of(const std::string& suite, std::vector<SuiteChart>* charts) {
  for (SuiteChart& chart : *charts) {
    if (chart.suite == suite) return &chart;
  }
  SuiteChart& made = charts->emplace_back();
  made.suite = suite;
  made.chart.title = suite;
  made.chart.series.resize(1);
  return &made;
}

// The charts below each other: each stays an <svg> of its own, which is given a place.
std::string stacked(const std::vector<SuiteChart>& charts) {
  if (charts.size() == 1) return plot::to_svg(charts[0].chart, plot::SvgPlace::kOwnFile);
  std::string inner;
  double width = 1;
  double top = 0;
  for (const SuiteChart& chart : charts) {
    std::string svg = plot::to_svg(chart.chart, plot::SvgPlace::kInPage);
    double height = 0;
    const size_t box = svg.find("viewBox=\"0 0 ");
    if (box == std::string::npos ||
        std::sscanf(svg.c_str() + box, "viewBox=\"0 0 %lf %lf\"", &width, &height) != 2) {
      continue;
    }
    char place[80];
    std::snprintf(place, sizeof place, " y=\"%g\" height=\"%g\"", top, height);
    inner += svg.insert(4, place);  // behind "<svg"
    if (!inner.ends_with('\n')) inner += "\n";
    top += height;
  }
  char opening[160];
  std::snprintf(opening, sizeof opening,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\">\n",
                width, top, width);
  return opening + inner + "</svg>\n";
}

}  // namespace

std::string results_svg(const BenchRun& run) {
  std::vector<SuiteChart> charts;
  for (const BenchResult& result : run.results) {
    plot::BarChart& chart = chart_of(result.suite, &charts)->chart;
    const Quantity* quantity = quantity_of(result.suite);
    const std::string& where =
        run.environment.gpu.empty() ? run.environment.cpu : run.environment.gpu;
    chart.title = "bench " + result.suite + (where.empty() ? "" : ", " + where);
    chart.unit = quantity == nullptr ? "% of the goal" : quantity->unit;
    chart.mark_name = "goal";
    add_bar(result, &chart);
  }
  return stacked(charts);
}

std::string comparison_svg(const std::vector<BenchDifference>& differences) {
  std::vector<SuiteChart> charts;
  for (const BenchDifference& difference : differences) {
    if (difference.verdict == BenchVerdict::kOnlyFirst ||
        difference.verdict == BenchVerdict::kOnlySecond) {
      continue;
    }
    plot::BarChart& chart = chart_of(difference.first.suite, &charts)->chart;
    chart.title = "bench " + difference.first.suite + ": B against A";
    chart.unit = "B in % of A";
    chart.mark_name = "A";
    chart.categories.push_back(label_of(difference.first));
    const bool is_finite = std::isfinite(difference.ratio);
    chart.series[0].values.push_back(is_finite ? 100 * difference.ratio : kNone);
    chart.marks.push_back(100);
  }
  return stacked(charts);
}

}  // namespace pagejit
