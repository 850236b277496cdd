// The kernels of an indexer: their plans and their texts. Pure. Thread-safety: free functions
// without state.
#pragma once

#include "generator/entry_text.h"

namespace pagejit {

Result<IndexKeyWriteConfig> plan(const IndexKeyWriteSpec& spec, const Target& target);
Result<IndexKeyGatherConfig> plan(const IndexKeyGatherSpec& spec, const Target& target);
Result<TopKConfig> plan(const TopKSpec& spec, const Target& target);
Result<IndexLogitsConfig> plan(const IndexLogitsSpec& spec, const Target& target);
EntryText entry_text(const IndexKeyWriteConfig& config);
EntryText entry_text(const IndexKeyGatherConfig& config);
EntryText entry_text(const TopKConfig& config);
EntryText entry_text(const IndexLogitsConfig& config);

}  // namespace pagejit
