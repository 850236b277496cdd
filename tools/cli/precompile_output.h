// What `pagejit precompile` hands on: the kernels that it made as one file. Thread-safety: free
// functions.
#pragma once

#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/cli/precompile_run.h"

namespace pagejit::cli {

// Writes the kernels that were made as a bundle to `path`, whole or not at all, from the engine
// that made them and without the times that its metadata tells, so that the same kernels are the
// same bundle. Nothing is written unless all are there (kNotFound); kCacheError with the reason
// where the file cannot be written. with_tuned: with the tuned records for these kernels that the
// engine's layers hold and their kernels, of all GPUs.
Status write_bundle_of(const std::string& path, Engine& engine,
                       const std::vector<PrecompileOutcome>& outcomes, bool with_tuned);

}  // namespace pagejit::cli
