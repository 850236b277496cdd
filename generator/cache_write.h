// The cache write: its plan and its text. Pure. Thread-safety: free functions without state.
#pragma once

#include "generator/entry_text.h"

namespace pagejit {

Result<CacheWriteConfig> plan(const CacheWriteSpec& spec, const Target& target);
EntryText entry_text(const CacheWriteConfig& config);

}  // namespace pagejit
