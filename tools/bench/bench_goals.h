// The goals of cases on the GPU that they were set for, as the README states them. Thread-safety: a
// free function without state.
#pragma once

#include <optional>
#include <string>

#include "tools/bench/bench_result.h"

namespace pagejit {

// gpu: its name. Nothing for other GPUs than the H200, and for cases without a goal.
std::optional<BenchGoal> goal_of(const BenchResult& result, const std::string& gpu);

}  // namespace pagejit
