// What `pagejit tune` measured, as text for people. Thread-safety: free functions.
#pragma once

#include <string>

#include "tools/tune/tune_run.h"

namespace pagejit::cli {

// The candidates with what the planner's model predicted and what was measured, the verdict below.
std::string tune_table(const TuneResult& result);

}  // namespace pagejit::cli
