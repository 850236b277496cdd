// What a program's comparisons have shown in all: one line at its end, for tools/test.sh to add up.
// Thread-safety: the main thread of a test program.
#pragma once

#include <string>

#include "tools/check/compare.h"

namespace pagejit {

// Fails the test where the launch did not pass. `what` names the case; empty: the test's own name.
void expect_passed(const CheckReport& report, const std::string& what = {});

}  // namespace pagejit
