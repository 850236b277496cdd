#include "tools/bench/quartiles.h"

#include <algorithm>
#include <cstddef>

namespace pagejit {
namespace {

double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

double relative_spread(std::vector<double> values) {
  if (values.size() < 2) return 0;
  std::sort(values.begin(), values.end());
  const double middle = quantile(values, 0.5);
  return middle > 0 ? (quantile(values, 0.75) - quantile(values, 0.25)) / middle : 0;
}

}  // namespace pagejit
