// The problems on which planted_bug_test looks for a bug: for each kind of kernels those in which
// any of its bugs shows. Thread-safety: no state.
#pragma once

#include <vector>

#include "tests/sweep/planted_bugs.h"
#include "tools/check/check.h"

namespace pagejit {

struct PlantedProblem {
  enum Kind {
    kCheck,          // run_check() with `options`
    kLaterLaunches,  // launches over one workspace, in changing orders
    kEndOfMask,      // a custom mask that ends with its allocation
  };

  KernelSpec spec;
  CheckOptions options;
  Kind kind = kCheck;
};

// In the order in which they are tried.
std::vector<PlantedProblem> planted_problems(PlantedBug::Kernels kernels);

}  // namespace pagejit
