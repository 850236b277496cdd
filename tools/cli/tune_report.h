// What `pagejit tune` measured and what lies in the cache of it, as text for people. Thread-safety:
// free functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/tuned_kernel.h"
#include "tools/tune/tune_run.h"

namespace pagejit::cli {

// The candidates with what the planner's model predicted and what was measured, the verdict below.
std::string tune_table(const TuneResult& result);

// Of the records for one spec and target, a line each: "tuned on NVIDIA H200: ..., 1.08 times as
// fast; taken where PAGEJIT_TUNED is on", or why it is not taken. "" where there is none.
std::string tuned_lines(const std::vector<TunedKernel>& kernels);

}  // namespace pagejit::cli
