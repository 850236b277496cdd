// Where the dynamic loader would find a library by SONAME, found without loading it:
// LD_LIBRARY_PATH, the loader's cache file, the default folders. Knows glibc's cache format;
// elsewhere (musl) only the folders are searched. Thread-safety: free functions without state.
//
// Format: glibc, sysdeps/generic/dl-cache.h, "glibc-ld.so.cache1.1", alone or behind the older
// "ld.so-1.7.0" table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/environment.h"

namespace pagejit::jit {

// The paths that a cache file's bytes give for `soname`, in its order. Garbage gives none.
std::vector<std::string> ld_cache_lookup(std::string_view cache, std::string_view soname);

// Paths of existing files that the loader would consider for `soname`, best first. `root` stands
// before every absolute path of the system ("" outside of tests), not before those of
// LD_LIBRARY_PATH.
std::vector<std::string> loader_paths(const std::string& soname, const Environment& environment,
                                      const std::string& root);

}  // namespace pagejit::jit
