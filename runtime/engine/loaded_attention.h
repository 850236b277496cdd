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

  // Upper bound of the row tiles of a ragged launch, 0 for others.
  int row_tiles(const AttentionArgs& args) const;
  // What is split, by the counts of the launch: its sequences, or its row tiles.
  int split_sequences(const AttentionArgs& args) const;
  const char* name_of_split_sequences() const;
  // Rows of which CTAs share the splits: of so many sequences, as split_sequences() says, the KV
  // heads, or parts of their groups.
  int64_t num_units(int num_sequences, int num_kv_heads) const;
  // The upper bound of the tokens of one sequence, by which splits are chosen.
  int64_t length_bound(const AttentionArgs& args) const;
  // What args.num_splits says, or the library's choice; at least 1.
  int num_splits(const AttentionArgs& args) const;

  // num_sequences: as split_sequences() says.
  size_t workspace_bytes(int num_sequences, int num_kv_heads, int num_splits) const;
  // Enough for every launch that leaves num_splits to the library.
  size_t max_workspace_bytes() const;

  // Read by every launch.
  const KernelConfig& config;  // in parts
  SplitDevice split;

 private:
  void describe_device(const DeviceInfo& info, int ctas_per_sm) override;
};

}  // namespace pagejit
