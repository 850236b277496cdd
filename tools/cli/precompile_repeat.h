// The functions that `pagejit precompile` runs on its list: make a kernel, see whether it is there,
// make it once more and compare. Thread-safety: the functions may be called from several threads at
// once; they keep their engines.
#pragma once

#include <memory>

#include "pagejit/engine.h"
#include "tools/cli/precompile_run.h"

namespace pagejit::cli {

// Engine::precompile().
PrecompileFunction make_function(std::shared_ptr<Engine> engine);

// kNotFound where the kernel is not stored; compiles nothing.
PrecompileFunction verify_function(std::shared_ptr<Engine> engine);

// Compiles anew, in an engine that has nothing but memory, and compares the images byte by byte:
// kDataCorrupt with the first difference. `options` are those of `engine`.
Result<PrecompileFunction> repeat_function(std::shared_ptr<Engine> engine,
                                           const EngineOptions& options);

}  // namespace pagejit::cli
