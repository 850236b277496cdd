// Pictures of benchmark results (tools/plot). Thread-safety: free functions without state.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/bench_compare.h"
#include "tools/bench/bench_result.h"

namespace pagejit {

// One picture with a chart of bars for each suite: of GPUs the rate that the suite is about (TB/s,
// TFLOP/s, speedup), of the others each figure in percent of its goal. Goals are marks across the
// bars.
std::string results_svg(const BenchRun& run);

// A chart for each suite: B in percent of A, case by case.
std::string comparison_svg(const std::vector<BenchDifference>& differences);

}  // namespace pagejit
