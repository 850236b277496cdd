// The merge of partial results: its plan and its text. Pure. Thread-safety: free functions without
// state.
#pragma once

#include "generator/entry_text.h"

namespace pagejit {

Result<MergeStatesConfig> plan(const MergeStatesSpec& spec, const Target& target);
EntryText entry_text(const MergeStatesConfig& config);

}  // namespace pagejit
