// The renderer: configuration -> source text, from the embedded templates. Pure: reads no file, no clock, no environment.
// Thread-safety: free functions without state.
#pragma once

#include "generator/config.h"

namespace pagejit {

Result<KernelSource> render(const KernelConfig& config);

}  // namespace pagejit
