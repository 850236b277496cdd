// One object of a manifest's "models": the kernels of a config.json for each number of GPUs.
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "tools/manifest/bounded_json.h"
#include "tools/manifest/expansion.h"

namespace pagejit::manifest {

// `folder`: where relative paths of config.json files begin. kInvalidArgument with the path in the
// JSON; kCacheError for one that cannot be read.
Status expand_models(const EntryOptions& entry, const Json& object, const std::string& folder,
                     Expansion* expansion);

}  // namespace pagejit::manifest
