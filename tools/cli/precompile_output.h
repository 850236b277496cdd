// What `pagejit precompile` hands on: the kernels that it made as one file. Thread-safety: free
// functions.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cache/entry.h"
#include "pagejit/engine.h"
#include "tools/cli/precompile_run.h"

namespace pagejit::cli {

// Yields one of the entries, the same at each call.
using EntrySource = std::function<Result<cache::Entry>(size_t)>;

// Writes the entries with numbers below num_entries as a bundle to `path`: whole or not at all.
// kCacheError with the reason.
Status write_bundle(const std::string& path, size_t num_entries, const EntrySource& entry);

// The entries of the kernels that were made, from the engine that made them, without times, so that
// the same kernels are the same bundle. Nothing is written unless all are there; kNotFound.
Status write_bundle_of(const std::string& path, Engine& engine,
                       const std::vector<PrecompileOutcome>& outcomes);

// Nothing that a build could not repeat: the metadata's time and its log are left out.
// kDataCorrupt where the metadata is not the runtime's.
Result<cache::Entry> without_times(const cache::Entry& entry);

}  // namespace pagejit::cli
