// The script of a dumped kernel (kernel_dump.h) that compiles it again, from the files beside it,
// and compares the result with the dumped image. For people; nothing of the library runs it.
// Thread-safety: a pure function.
#pragma once

#include <string>

#include "generator/config.h"
#include "runtime/jit/compiler.h"

namespace pagejit {

// A script for sh. It needs, for a GPU's target, libnvrtc and python3, or else nvcc; for the host's
// the C++ compiler. Its exit code: 0 the same bytes, 1 other bytes, 2 the compile failed, 3 no
// compiler.
std::string repro_script(const KernelSource& source, const CompileRecipe& recipe);

}  // namespace pagejit
