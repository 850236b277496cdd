// LoadedSparseAttention: the kernels of sparse attention, ready on one device; what a
// SparseAttentionKernel points to. Thread-safety: constant once it is made.
#pragma once

#include <memory>

#include "pagejit/sparse_attention.h"
#include "runtime/engine/loaded_attention.h"

namespace pagejit {

struct LoadedSparseAttention {
  SparseAttentionSpec spec;
  SparseAttentionInfo info;
  std::shared_ptr<const LoadedKernel> logits;
  std::shared_ptr<const LoadedKernel> top_k;
  std::shared_ptr<const LoadedKernel> attention_kernel;  // a LoadedAttention

  const LoadedAttention& attention() const {
    return static_cast<const LoadedAttention&>(*attention_kernel);
  }
};

}  // namespace pagejit
