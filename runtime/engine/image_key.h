// What the key of a kernel's image is made of: the one place that says so, for the engine and for
// tools that name entries. Thread-safety: free functions.
#pragma once

#include "cache/key.h"
#include "generator/config.h"
#include "runtime/jit/compiler.h"

namespace pagejit {

// All ingredients but the compiler's identity, which may have to be looked for (Compiler::identity)
// and which the image itself may correct (CompiledImage::compiler_identity).
cache::KeyIngredients key_ingredients(const KernelSource& source, const Compiler& compiler);

}  // namespace pagejit
