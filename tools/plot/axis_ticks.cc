#include "tools/plot/axis_ticks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace pagejit::plot {
namespace {

constexpr double kWantedTicks = 5;
// Room between the outermost values and the ends, as a factor or as a part of the range.
constexpr double kLogarithmicMargin = 1.3;
constexpr double kLinearMargin = 0.04;
// Beyond these, values are written with exponents.
constexpr double kLargestPlain = 1e7;
constexpr double kSmallestPlain = 1e-4;

// 1, 2 or 5 times a power of ten, not below `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

bool AxisRange::can_show(double value) const {
  return std::isfinite(value) && (scale == Scale::kLinear || value > 0);
}

double AxisRange::fraction(double value) const {
  if (scale == Scale::kLinear) return (value - min) / (max - min);
  return std::log(value / min) / std::log(max / min);
}

AxisRange range_of(const Axis& axis, const std::vector<double>& values) {
  AxisRange range;
  range.scale = axis.scale;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!range.can_show(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const bool is_log = axis.scale == Scale::kLogarithmic;
  if (low > high) {
    low = is_log ? 1 : 0;
    high = is_log ? 10 : 1;
  } else if (is_log) {
    low /= kLogarithmicMargin;
    high *= kLogarithmicMargin;
  } else {
    const double room = (high - low) * kLinearMargin;
    // An axis of what cannot be negative begins at 0 where that is near.
    low = low >= 0 && low <= high / 2 ? 0 : low - room;
    high += room;
  }
  if (axis.min && range.can_show(*axis.min)) low = *axis.min;
  if (axis.max && range.can_show(*axis.max)) high = *axis.max;
  if (!(low < high)) {  // one value, or ends that are no ends
    low = is_log ? low / 10 : low - 1;
    high = is_log ? low * 100 : low + 2;
  }
  range.min = low;
  range.max = high;
  return range;
}

std::vector<double> ticks_of(const AxisRange& range) {
  std::vector<double> ticks;
  const double decades = range.scale == Scale::kLogarithmic ? std::log10(range.max / range.min) : 0;
  if (decades >= 1) {
    const double every = std::max(1.0, std::ceil(decades / (2 * kWantedTicks)));
    const bool fill = decades < 2;
    for (double power = std::floor(std::log10(range.min)); power <= std::log10(range.max);
         power += fill ? 1 : every) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1 && !fill) break;
        const double value = factor * std::pow(10.0, power);
        if (value >= range.min && value <= range.max) ticks.push_back(value);
      }
    }
    return ticks;
  }
  const double step = round_step((range.max - range.min) / kWantedTicks);
  const double first = std::ceil(range.min / step - 1e-9);
  // At most as many as fit, whatever rounding does to the sum.
  for (double i = 0; i <= 2 * kWantedTicks; ++i) {
    const double value = (first + i) * step;
    if (value > range.max + step * 1e-9) break;
    ticks.push_back(value == 0 ? 0 : value);  // no -0
  }
  return ticks;
}

std::string tick_text(double value) {
  char digits[64];
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= kSmallestPlain && size < kLargestPlain);
  const auto end = std::to_chars(digits, digits + sizeof digits, value,
                                 plain ? std::chars_format::general : std::chars_format::scientific,
                                 plain ? 6 : 0);
  std::string text(digits, end.ptr);
  if (!plain || size < 1000) return text;
  // 1e+06, which is what six digits give, is written out.
  if (text.find('e') != std::string::npos) text = std::to_string(std::llround(value));
  const size_t point = std::min(text.find('.'), text.size());
  const size_t first = text[0] == '-' ? 1 : 0;
  for (size_t i = point; i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

}  // namespace pagejit::plot
