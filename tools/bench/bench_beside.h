// Benchmark programs that lie beside the command and measure apart from its process: what `pagejit
// bench host` and `pagejit bench store` run. Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/bench_result.h"
#include "tools/cli/command_context.h"

namespace pagejit::cli {

// Runs `name SELF FIGURES FOLDER FILES... NVRTC`; FILES lie beside the command too, and NVRTC is
// EngineOptions::nvrtc_path. It prints its own lines, and leaves its figures in the file FIGURES.
// FOLDER is empty, and removed at the end however the program ended; an interrupt of this process
// ends it and all that it has started. Its exit code is the context's. The results have the suite's
// name; what was measured before a failure counts. lines_to_err: its lines go to standard error,
// since standard output is for JSON.
std::vector<BenchResult> run_beside(const std::string& suite, const std::string& name,
                                    const std::vector<std::string>& files, const std::string& nvrtc,
                                    bool lines_to_err, CommandContext& context);

// The results of a file of figures (bench_child.h); lines that are none are left out.
std::vector<BenchResult> parse_figures(const std::string& suite, const std::string& text);

}  // namespace pagejit::cli
