// AttentionLayers: everything that this program asks of pagejit. It holds the paged K and V of all
// layers, rotates and writes new tokens, attends, and copies blocks. Not here: which block belongs
// to whom (sequence.h), and the rest of the model (transformer.h). Thread-safety: one thread.
#pragma once

#include <pagejit/engine.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "device.h"
#include "model.h"
#include "sequence.h"

namespace llm {

// A sequence's part in one forward pass: its tokens [num_cached, num_cached + num_tokens), for
// which it has blocks.
struct StepPart {
  const Sequence* sequence = nullptr;
  size_t num_tokens = 0;
};

// Successful calls of launch(), by what was launched.
struct LaunchCounts {
  uint64_t cache_writes = 0;
  uint64_t written_tokens = 0;  // by all cache writes together
  uint64_t prefills = 0;
  uint64_t decodes = 0;
  uint64_t cascades = 0;  // of three kernels each: prefix, suffixes, merge
  uint64_t copies = 0;
};

class AttentionLayers {
 public:
  struct Limits {
    int num_blocks = 0;
    size_t max_tokens = 0;  // of a forward pass
    size_t max_length = 0;  // of a sequence
    size_t max_sequences = 0;
  };
  // Prepares all kernels and allocates the caches. uses_cascade: decode reads blocks that all
  // sequences share once, not once per sequence; for models without windows.
  static pagejit::Result<std::unique_ptr<AttentionLayers>> create(
      pagejit::Engine& engine, std::shared_ptr<const Device> device, const Model& model,
      const Limits& limits, bool uses_cascade);

  // Tells the device where the tokens of the next forward pass go and what they see. The parts'
  // tokens follow each other in q, k and v. One token in each part: decode, else prefill.
  pagejit::Status begin_step(const std::vector<StepPart>& parts);

  // One layer of that pass: q [tokens, heads, head_size], k and v [tokens, kv_heads, head_size],
  // out as q. Rotates q and k by their positions and writes k and v to the cache.
  pagejit::Status attend(size_t layer, const std::vector<float>& q, const std::vector<float>& k,
                         const std::vector<float>& v, std::vector<float>& out);

  // In the caches of all layers.
  pagejit::Status copy_block(const BlockCopy& copy);

  // From the next step on, the first two sequences' ids of block `index` are exchanged in the table
  // that attention reads, and only there. (Within one sequence it would change nothing: keys are
  // stored rotated, so softmax does not care about their order.)
  void break_block_table(size_t index) { broken_entry_ = static_cast<int64_t>(index); }

  // The next attention is launched twice, which changes no result; counted twice too, or once.
  void repeat_next_launch(bool is_counted) { repeated_ = is_counted ? 2 : 1; }

  const LaunchCounts& counts() const { return counts_; }

 private:
  explicit AttentionLayers(const Model& model) : model_(model) {}
  pagejit::Status prepare(pagejit::Engine& engine, bool uses_cascade);
  pagejit::Status allocate(std::shared_ptr<const Device> device, const Limits& limits);
  pagejit::Status make_rotations(std::shared_ptr<const Device> device, size_t max_length);
  pagejit::Status write_cache(size_t layer);
  pagejit::Status attend_cached(size_t layer);
  pagejit::Status attend_cascade(size_t layer);

  const Model& model_;
  LaunchCounts counts_;
  int64_t broken_entry_ = -1;
  int repeated_ = 0;  // how often the next attention is counted, if it is launched twice

  // Kernels with and without a window: [0] for layers that see all tokens, [1] for the others.
  pagejit::CacheWriteKernel cache_write_;
  pagejit::Kernel prefill_[2], decode_[2];
  pagejit::CascadeKernel cascade_;
  pagejit::CopyBlocksKernel copy_blocks_;

  // bf16 [num_blocks, kBlockSize, kv_heads, head_size], one per layer.
  std::vector<DeviceBuffer> k_caches_, v_caches_;
  DeviceBuffer cache_addresses_;                // of both, for copies
  std::map<double, DeviceBuffer> rotations_;    // by rope base: [max_length, head_size] of cos, sin
  DeviceBuffer q_, k_, v_, out_;                // of one layer; out is f32, the others bf16
  DeviceBuffer positions_, slots_;              // int64 [tokens]
  DeviceBuffer block_table_;                    // int32 [sequences, max_blocks_]
  DeviceBuffer seq_lens_, query_starts_;        // int32 [sequences], [sequences + 1]
  DeviceBuffer prefix_length_, prefix_starts_;  // of a cascade's first level: int32 [1], [2]
  DeviceBuffer suffix_lens_;                    // of its second: int32 [sequences]
  DeviceBuffer block_pair_;                     // int64 [1, 2]
  DeviceBuffer workspace_;
  size_t workspace_bytes_ = 0;
  int max_blocks_ = 0;  // of a sequence
  int64_t num_blocks_ = 0;

  // Of the current step.
  int32_t num_tokens_ = 0, num_sequences_ = 0, longest_ = 0, num_shared_blocks_ = 0;
  bool is_decode_ = false;
  std::vector<uint16_t> narrow_;  // scratch
};

}  // namespace llm
