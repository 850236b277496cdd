// What `pagejit precompile` is asked to make: flags for models, specs, manifests and traces, and
// the list that they come to. Thread-safety: plain values and free functions.
#pragma once

#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/cli/precompile_run.h"
#include "tools/cli/spec_flags.h"

namespace pagejit::cli {

// Values as given.
struct ListFlags {
  SpecFlags spec;
  std::vector<std::string> archs;
  std::vector<std::string> manifests;
  std::vector<std::string> traces;
  std::string shard;  // "2/8"; "" = all

  bool has_list() const { return !manifests.empty() || !traces.empty(); }
};

struct PrecompileList {
  std::vector<PrecompileJob> jobs;       // each once
  std::vector<std::string> unsupported;  // one sentence per kernel of a model that cannot be made
  std::vector<std::string> damaged;      // one per line of a trace that was left out
  std::string description;               // of the models and lists, several lines
};

// A list of a manifest or a trace, or a shard, is sorted. --arch gives the targets of models, specs
// and manifests without targets; of manifests and traces only kernels for these are made where it
// is given. Where it is missing and needed, that of the engine's first GPU. kInvalidArgument,
// kUnsupported, kCacheError for a file that cannot be read.
Result<PrecompileList> make_precompile_list(const ListFlags& flags, Engine& engine);

// What can be said before there is an engine: malformed targets and shards, missing flags.
Status check_list_flags(const ListFlags& flags);

}  // namespace pagejit::cli
