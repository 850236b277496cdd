// LoadedCascade: the kernels of a cascade, ready on one device; what a CascadeKernel points to.
// Thread-safety: constant once it is made.
#pragma once

#include <memory>

#include "pagejit/cascade.h"
#include "runtime/engine/loaded_attention.h"

namespace pagejit {

struct LoadedCascade {
  CascadeSpec spec;
  CascadeInfo info;
  // LoadedAttention, but for the last.
  std::shared_ptr<const LoadedKernel> prefix_kernel;
  std::shared_ptr<const LoadedKernel> suffix_kernel;
  std::shared_ptr<const LoadedKernel> merge;

  const LoadedAttention& prefix() const {
    return static_cast<const LoadedAttention&>(*prefix_kernel);
  }
  const LoadedAttention& suffix() const {
    return static_cast<const LoadedAttention&>(*suffix_kernel);
  }
};

}  // namespace pagejit
