// Two runs of the same benchmarks, case by case: `pagejit bench --compare A.json B.json`.
// Thread-safety: plain values and free functions without state.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/bench_result.h"

namespace pagejit {

enum class BenchVerdict : uint8_t { kSame, kBetter, kWorse, kOnlyFirst, kOnlySecond };

struct BenchDifference {
  BenchResult first = {};   // of kOnlySecond: empty
  BenchResult second = {};  // of kOnlyFirst: empty
  double ratio = 1;         // second / first; infinite where only the first is 0
  double noise = 0;         // a ratio within 1 +- noise says nothing
  BenchVerdict verdict = BenchVerdict::kSame;

  const BenchResult& any() const { return verdict == BenchVerdict::kOnlySecond ? second : first; }
  // How much worse the second is than the first: 0.1 for a tenth, whichever direction is better.
  double loss() const;
};

// Cases with the same suite, name and shape are the same; several alike are paired in their order.
// A ratio counts where it lies outside the sum of both noises, but at least 1 %, the least that
// clocks and caches of idle machines differ by; 10 % where a noise is not known; any where both are
// 0. In the first run's order, what only the second has last.
std::vector<BenchDifference> compare_runs(const BenchRun& first, const BenchRun& second);

const char* verdict_name(BenchVerdict verdict);  // "same", "better", "worse", "only in A", ...

// {"first": environment's date..., "differences": [...]}; ends in a line break.
std::string comparison_json(const BenchRun& first, const BenchRun& second,
                            const std::vector<BenchDifference>& differences);

}  // namespace pagejit
