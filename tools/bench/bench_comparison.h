// `pagejit bench --compare A.json B.json`, as a person sees it. Thread-safety: a free function.
#pragma once

#include "tools/bench/bench_flags.h"

namespace pagejit::cli {

// Compares the two files of flags.compare: a table, the files of --json and --svg, and a failure
// for each case that is worse by more than --threshold.
void compare_files(const BenchFlags& flags, CommandContext& context);

}  // namespace pagejit::cli
