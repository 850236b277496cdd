// The support matrix: what pagejit serves, as the validator answers, and which test shows each. It
// is a document (generator/support.md) that a test writes and compares. Thread-safety: pure
// functions.
#pragma once

#include <string>
#include <vector>

namespace pagejit::docs {

// The two parts of generator/support.md: where what is served has run, and the tables. gpu_results:
// file names below tools/bench/results/, what has run on a GPU.
std::string support_heading(const std::vector<std::string>& gpu_results);
std::string support_tables();

}  // namespace pagejit::docs
