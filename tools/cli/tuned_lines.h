// What lies in the cache of tuned choices, as text for people. Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/tuned_kernel.h"

namespace pagejit::cli {

// Of the records for one spec and target, a line each: "tuned on NVIDIA H200: ..., 1.08 times as
// fast; taken where PAGEJIT_TUNED is on", or why it is not taken. "" where there is none.
std::string tuned_lines(const std::vector<TunedKernel>& kernels);

}  // namespace pagejit::cli
