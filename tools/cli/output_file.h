// Files that commands write or need to write to. Thread-safety: free functions.
#pragma once

#include <ostream>
#include <string>

#include "cache/cache_directory.h"
#include "pagejit/engine.h"

namespace pagejit::cli {

// Writes `text` to `path` ("-": to `out`): a file appears whole or not at all, and what was there
// stays until then. It keeps its mode; a new one has 0666 without the umask. What is no regular
// file (/dev/stdout, a pipe) is written directly. kCacheError, exit code 4, with the reason where
// that fails.
Status write_output(const std::string& path, const std::string& text, std::ostream& out);

// The directory that an engine with these options keeps its kernels in. kCacheError where there is
// none, with the reason.
Result<cache::DirectoryChoice> find_cache_directory(const EngineOptions& options);

// Whether kernels can be kept where the options say: makes the directory and a file in it.
// kCacheError with the reason.
Status check_cache_directory(const EngineOptions& options);

}  // namespace pagejit::cli
