// Where an axis begins and ends, and which values it names. Thread-safety: plain values and free
// functions without state.
#pragma once

#include <string>
#include <vector>

#include "tools/plot/svg_chart.h"

namespace pagejit::plot {

struct AxisRange {
  double min = 0;  // below max; positive where the scale is logarithmic
  double max = 1;
  Scale scale = Scale::kLinear;

  bool can_show(double value) const;
  // 0 at min, 1 at max; beyond these for values beyond.
  double fraction(double value) const;
};

// Around all of `values` that the scale can show, or the ends that the axis asks for.
AxisRange range_of(const Axis& axis, const std::vector<double>& values);

// Some 5 round values within the range, ascending; powers of ten on a logarithmic axis of two
// decades or more.
std::vector<double> ticks_of(const AxisRange& range);

// "0.25", "1,500", "2e+09": the same on every machine, whatever the locale.
std::string tick_text(double value);

}  // namespace pagejit::plot
