// What an engine has stored, seen by tools that make kernels ahead: whether a kernel is there, and
// its bytes. Internal; needs no driver and no GPU. Thread-safety: may be called from several
// threads at once.
#pragma once

#include <memory>

#include "cache/entry.h"
#include "generator/config.h"
#include "pagejit/engine.h"

namespace pagejit {

struct StoredKernel {
  std::shared_ptr<const cache::Entry> entry;  // intact, with its key and metadata
  KernelInfo info;                            // as precompile() gives it
};

// What prepare() would find for exactly this target, in memory or in any layer of the cache,
// without compiling. No compiler is opened; where none is found, the newest entry of any compiler
// is taken. kNotFound with the key; kInvalidArgument and kUnsupported as precompile().
Result<StoredKernel> find_stored(Engine& engine, const AnySpec& spec, const Target& target);

// Engine::precompile() of a spec of any family.
Result<KernelInfo> precompile_any(Engine& engine, const AnySpec& spec, const Target& target);

}  // namespace pagejit
