// The one entry of a cache directory that a person names by the beginning of its key.
// Thread-safety: a free function.
#pragma once

#include <string>

#include "cache/cache_maintenance.h"

namespace pagejit::cli {

// The file's name, for CacheMaintenance::read(). kNotFound where none or several begin with `key`.
Result<std::string> find_entry(cache::CacheMaintenance& directory, const std::string& key);

}  // namespace pagejit::cli
