// Copies of blocks, gathering and conversion: their plans and their texts. Pure. Thread-safety:
// free functions without state.
#pragma once

#include "generator/entry_text.h"

namespace pagejit {

Result<CopyBlocksConfig> plan(const CopyBlocksSpec& spec, const Target& target);
Result<GatherCacheConfig> plan(const GatherCacheSpec& spec, const Target& target);
Result<ConvertFloat8Config> plan(const ConvertFloat8Spec& spec, const Target& target);
EntryText entry_text(const CopyBlocksConfig& config);
EntryText entry_text(const GatherCacheConfig& config);
EntryText entry_text(const ConvertFloat8Config& config);

}  // namespace pagejit
