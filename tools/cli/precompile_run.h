// The work of `pagejit precompile`: many kernels on a few threads, and the report on them. Knows no
// engine: what makes a kernel is a function, so that tests put in their own. Thread-safety: free
// functions; each call has its own threads.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "generator/config.h"
#include "pagejit/engine.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/progress.h"

namespace pagejit::cli {

struct PrecompileJob {
  AnySpec spec;
  Target target;
};

// Called from several threads at once. kNotFound is a kernel that is missing where all must be
// stored, kDataCorrupt one that came out otherwise the second time.
using PrecompileFunction = std::function<Result<KernelInfo>(const AnySpec&, const Target&)>;

struct PrecompileOutcome {
  PrecompileJob job;
  std::optional<Result<KernelInfo>> result;  // nothing: not started, because of an interrupt
};

// Runs all jobs on `num_threads` threads and goes on after failures. Once `interrupted` is set,
// what runs is finished and nothing more is started. Outcomes are in the order of the jobs.
std::vector<PrecompileOutcome> run_precompile(const std::vector<PrecompileJob>& jobs,
                                              const PrecompileFunction& precompile, int num_threads,
                                              const std::atomic<bool>& interrupted,
                                              Progress* progress);

// A row per kernel that is there: time, bytes, registers, spills, cached or compiled.
std::string outcome_table(const std::vector<PrecompileOutcome>& outcomes,
                          const Terminal& terminal = {});

// "12 kernels: 10 compiled in 1,530 ms, 2 cached; 1 failed; 3 not started". wall_ms: of the whole
// run.
std::string outcome_summary(const std::vector<PrecompileOutcome>& outcomes, double wall_ms);

// One JSON object per line and kernel.
std::string outcome_json(const std::vector<PrecompileOutcome>& outcomes);

ExitCode outcome_exit_code(const std::vector<PrecompileOutcome>& outcomes);

}  // namespace pagejit::cli
