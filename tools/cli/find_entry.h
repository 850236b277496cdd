// The one entry of a cache directory that a person names by the beginning of its key.
// Thread-safety: a free function.
#pragma once

#include <string>

#include "cache/cache_maintenance.h"

namespace pagejit::cli {

// Whether `text` may be a key or the beginning of one: hex digits of the source's digest, and
// behind a full stop those of the compiler's, as `pagejit key` prints them.
bool begins_key(const std::string& text);

// The file's name, for CacheMaintenance::read(). kNotFound where none or several begin with `key`.
Result<std::string> find_entry(cache::CacheMaintenance& directory, const std::string& key);

}  // namespace pagejit::cli
