// PagedCache: one layer's K and V in blocks that sequences take as they grow, share when they are
// forked and give back. It decides which block holds what, and copies blocks where sharing ends and
// where a sequence goes to the host; it computes nothing. One thread.
#pragma once

#include <pagejit/engine.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda_driver.h"
#include "model.h"

// A sequence's tokens in the cache: its row of the block table.
struct Sequence {
  std::vector<int32_t> blocks;  // ceil(num_tokens / kBlockSize) of them
  int32_t num_tokens = 0;
};

// A sequence's tokens in host memory: K of all its blocks, then V of all.
struct SwappedSequence {
  std::unique_ptr<PinnedBuffer> memory;
  int num_blocks = 0;
  int32_t num_tokens = 0;
};

// What is done wrong on purpose (--break), to see that the program's checks find it.
enum class Fault {
  kNone,
  kBlockTable,  // every second block in the table has the id of the first (AttentionLayer)
  kFork,        // the fork gets blocks of its own at once
  kCopy,        // the block that is written after the fork is not copied
  kGrow,        // a decode step that needs another block goes on in the last one
  kSwap,        // nothing is copied back from the host
};

class PagedCache {
 public:
  // `engine` must outlive the cache.
  PagedCache(const CudaDriver& cuda, pagejit::Engine& engine, int num_blocks);

  // Makes room for `count` tokens and returns their slots, as CacheWriteArgs::slot_mapping wants
  // them. A block that is written and shared is copied first.
  std::vector<int64_t> append(Sequence& sequence, int count);
  // A sequence with the same tokens in the same blocks.
  Sequence fork(const Sequence& sequence);
  // Copies to host memory and gives the blocks back; and into other blocks again.
  SwappedSequence swap_out(Sequence& sequence);
  Sequence swap_in(const SwappedSequence& swapped);

  int num_used_blocks() const { return static_cast<int>(num_users_.size() - free_blocks_.size()); }
  void break_by(Fault fault) { fault_ = fault; }

  void* k_cache() const { return k_.data(); }
  void* v_cache() const { return v_.data(); }
  // Both caches are [num_blocks, kBlockSize, kNumKvHeads, kHeadSize].
  static constexpr pagejit::KvStrides strides() {
    return {.block = kBlockSize * kKvElements, .token = kKvElements, .head = kHeadSize};
  }

 private:
  int32_t take_block();
  void give_back(int32_t block);
  void copy_blocks(const std::vector<int64_t>& pairs);
  void swap(pagejit::SwapDirection direction, const SwappedSequence& swapped,
            const std::vector<int32_t>& blocks);

  const CudaDriver& cuda_;
  pagejit::Engine& engine_;
  pagejit::CopyBlocksKernel copy_kernel_;
  DeviceBuffer k_;
  DeviceBuffer v_;
  DeviceBuffer cache_pointers_;       // for the copies: k_ and v_
  std::vector<int32_t> num_users_;    // of each block
  std::vector<int32_t> free_blocks_;  // the one given back last is taken first
  Fault fault_ = Fault::kNone;
};
