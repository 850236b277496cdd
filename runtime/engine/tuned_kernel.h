// What an engine has stored of tuned choices, seen by tools. Internal; needs no driver and no GPU.
// Thread-safety: may be called from several threads at once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/entry.h"
#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/engine/stored_kernel.h"
#include "runtime/tuned_record.h"

namespace pagejit {

// A record that was found, with its entry.
struct FoundRecord {
  std::shared_ptr<const cache::Entry> entry;
  TunedRecord record;
};

struct TunedKernel {
  FoundRecord found;
  // The choice's image; nothing: the record is not used, for the reason.
  std::optional<StoredKernel> image;
  Status why_unused;
};

// The records for this spec and target in bundles, read-only directories and the cache directory,
// of all GPUs, each GPU's first one; whatever EngineOptions::tuned says. Compiles nothing.
// kInvalidArgument and kUnsupported as precompile().
Result<std::vector<TunedKernel>> find_tuned(Engine& engine, const KernelSpec& spec,
                                            const Target& target);

}  // namespace pagejit
