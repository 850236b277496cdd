// Expansion: what the objects of a manifest add their kernels to. Counts, excludes and plans them.
// Thread-safety: belongs to one thread.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/manifest/exclusion.h"
#include "tools/manifest/manifest.h"

namespace pagejit::manifest {

// What an object says of all its kernels.
struct EntryOptions {
  std::string path;             // "kernels[2]"
  std::vector<Target> targets;  // at least one
  bool skip_illegal = false;
};

class Expansion {
 public:
  Expansion(std::vector<Exclusion> exclusions, size_t max_kernels)
      : exclusions_(std::move(exclusions)), max_kernels_(std::min(max_kernels, kMaxKernels)) {}

  // To be called before so many specs are added, each for all targets: kInvalidArgument where the
  // manifest comes to more than max_kernels.
  Status reserve(const EntryOptions& entry, size_t num_specs);

  // Adds the spec for each target, unless it is excluded. The error is validate()'s, or plan()'s
  // with the target: kUnsupported.
  Status add(const EntryOptions& entry, const AnySpec& spec);
  // The same, where a kernel that a target cannot have is told as unsupported.
  Status add_of_model(const EntryOptions& entry, const std::string& model, const AnySpec& spec);
  void add_unsupported(std::string sentence);

  // Sorted, each once.
  Manifest take();

 private:
  bool is_excluded(const AnySpec& spec, const Target& target) const;

  const std::vector<Exclusion> exclusions_;
  const size_t max_kernels_;
  size_t num_reserved_ = 0;  // at most max_kernels_
  Manifest manifest_;
};

}  // namespace pagejit::manifest
