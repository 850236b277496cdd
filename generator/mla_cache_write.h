// The write of a latent cache: its plan and its text. Pure. Thread-safety: free functions without
// state.
#pragma once

#include "generator/entry_text.h"

namespace pagejit {

Result<MlaCacheWriteConfig> plan(const MlaCacheWriteSpec& spec, const Target& target);
EntryText entry_text(const MlaCacheWriteConfig& config);

}  // namespace pagejit
