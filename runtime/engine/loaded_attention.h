// LoadedAttention: what an attention kernel has beside every loaded kernel: the device's numbers by
// which sequences are split, and the workspace that splits need. Thread-safety: constant once it is
// made.
#pragma once

#include <cstddef>

#include "runtime/engine/loaded_kernel.h"
#include "runtime/split_policy.h"

namespace pagejit {

struct LoadedAttention final : LoadedKernel {
  LoadedAttention(LoadedKernelParts loaded_parts, CUdevice on_device);

  size_t workspace_bytes(int num_seqs, int num_kv_heads, int num_splits) const;

  // Read by every launch.
  const KernelConfig& config;  // in parts
  SplitDevice split;

 private:
  void describe_device(const DeviceInfo& info, int ctas_per_sm) override;
};

}  // namespace pagejit
