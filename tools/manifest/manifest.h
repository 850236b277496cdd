// Manifests: JSON files that say which kernels to make ahead of deployment; README.md has the
// format. Any bytes are legal input. Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/manifest/kernel_list.h"

namespace pagejit::manifest {

// Above any fleet's need (vLLM's shapes of all its models are a few thousand); it bounds what
// a slip, or a stranger's file, costs.
inline constexpr size_t kMaxKernels = 100000;

struct ManifestOptions {
  // For kernels that neither their own object nor the manifest gives targets.
  std::vector<Target> default_targets;
  std::string folder = ".";          // where the paths of models begin
  size_t max_kernels = kMaxKernels;  // fewer for those with less time; more there never are
};

struct Manifest {
  std::vector<ListedKernel> kernels;     // sorted, each once; each has been planned
  std::vector<std::string> unsupported;  // one sentence per layer kind of a model without a kernel
};

// kInvalidArgument with the place in the JSON ("kernels[2].head_size: 100: must be ...");
// kCacheError for a model's file that cannot be read.
Result<Manifest> expand_manifest(std::string_view json, const ManifestOptions& options);

// Of a file, or a pipe (read_bounded_file()), whose folder is the models'. Messages begin with the
// path.
Result<Manifest> load_manifest(const std::string& path, std::vector<Target> default_targets);

}  // namespace pagejit::manifest
