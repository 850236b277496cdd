#include "paged_cache.h"

#include <stdexcept>

PagedCache::PagedCache(const CudaDriver& cuda, pagejit::Engine& engine, int num_blocks)
    : cuda_(cuda),
      engine_(engine),
      copy_kernel_(require(engine.prepare(pagejit::CopyBlocksSpec{}))),
      k_(cuda, static_cast<size_t>(num_blocks) * kBlockBytes),
      v_(cuda, static_cast<size_t>(num_blocks) * kBlockBytes),
      cache_pointers_(cuda, std::vector<void*>{k_.data(), v_.data()}),
      num_users_(static_cast<size_t>(num_blocks), 1) {
  for (int block = num_blocks - 1; block >= 0; --block) give_back(block);
}

int32_t PagedCache::take_block() {
  if (free_blocks_.empty()) throw std::runtime_error("the paged cache is full");
  const int32_t block = free_blocks_.back();
  free_blocks_.pop_back();
  num_users_[static_cast<size_t>(block)] = 1;
  return block;
}

void PagedCache::give_back(int32_t block) {
  if (--num_users_[static_cast<size_t>(block)] > 0) return;
  free_blocks_.push_back(block);
  // Nothing may read what is left in a free block, nor the rest of one that is taken: to show that,
  // it is filled with NaN (0xffff). An engine does not do this.
  const size_t offset = static_cast<size_t>(block) * kBlockBytes;
  k_.fill(offset, kBlockBytes, 0xff);
  v_.fill(offset, kBlockBytes, 0xff);
}

std::vector<int64_t> PagedCache::append(Sequence& sequence, int count) {
  std::vector<int64_t> slots;
  std::vector<int64_t> copies;  // from, to
  for (int i = 0; i < count; ++i) {
    const int32_t place = sequence.num_tokens % kBlockSize;
    if (place == 0) {
      const bool is_stuck = fault_ == Fault::kGrow && count == 1;
      sequence.blocks.push_back(is_stuck ? sequence.blocks.back() : take_block());
    } else if (int32_t& last = sequence.blocks.back(); num_users_[static_cast<size_t>(last)] > 1) {
      const int32_t copy = take_block();
      copies.insert(copies.end(), {last, copy});
      give_back(last);
      last = copy;
    }
    slots.push_back(int64_t{sequence.blocks.back()} * kBlockSize + place);
    ++sequence.num_tokens;
  }
  if (!copies.empty() && fault_ != Fault::kCopy) copy_blocks(copies);
  return slots;
}

void PagedCache::copy_blocks(const std::vector<int64_t>& pairs) {
  const DeviceBuffer device_pairs(cuda_, pairs);
  pagejit::CopyBlocksArgs args;
  args.caches = cache_pointers_.data<void*>();
  args.num_caches = 2;
  args.block_bytes = kBlockBytes;
  args.block_stride_bytes = kBlockBytes;
  args.pairs = device_pairs.data<const int64_t>();
  args.num_pairs = static_cast<int32_t>(pairs.size() / 2);
  require(copy_kernel_.launch(args, cuda_.stream()));
}

Sequence PagedCache::fork(const Sequence& sequence) {
  if (fault_ == Fault::kFork) {
    Sequence result = sequence;
    std::vector<int64_t> copies;
    for (int32_t& block : result.blocks) {
      const int32_t copy = take_block();
      copies.insert(copies.end(), {block, copy});
      block = copy;
    }
    copy_blocks(copies);
    return result;
  }
  for (const int32_t block : sequence.blocks) ++num_users_[static_cast<size_t>(block)];
  return sequence;
}

SwappedSequence PagedCache::swap_out(Sequence& sequence) {
  SwappedSequence swapped;
  swapped.memory = std::make_unique<PinnedBuffer>(cuda_, 2 * sequence.blocks.size() * kBlockBytes);
  swapped.num_blocks = static_cast<int>(sequence.blocks.size());
  swapped.num_tokens = sequence.num_tokens;
  swap(pagejit::SwapDirection::kDeviceToHost, swapped, sequence.blocks);
  // The copies come first in the stream, so the blocks may be written by what follows them there.
  for (const int32_t block : sequence.blocks) give_back(block);
  sequence = {};
  return swapped;
}

Sequence PagedCache::swap_in(const SwappedSequence& swapped) {
  Sequence sequence{.blocks = {}, .num_tokens = swapped.num_tokens};
  for (int i = 0; i < swapped.num_blocks; ++i) sequence.blocks.push_back(take_block());
  if (fault_ == Fault::kSwap) return sequence;
  swap(pagejit::SwapDirection::kHostToDevice, swapped, sequence.blocks);
  return sequence;
}

void PagedCache::swap(pagejit::SwapDirection direction, const SwappedSequence& swapped,
                      const std::vector<int32_t>& blocks) {
  const bool is_out = direction == pagejit::SwapDirection::kDeviceToHost;
  std::vector<int64_t> pairs;  // from, to
  for (int64_t i = 0; i < swapped.num_blocks; ++i) {
    const int64_t block = blocks[static_cast<size_t>(i)];
    pairs.insert(pairs.end(), {is_out ? block : i, is_out ? i : block});
  }
  auto* const k_host = static_cast<std::byte*>(swapped.memory->data());
  void* const v_host = k_host + static_cast<size_t>(swapped.num_blocks) * kBlockBytes;
  const auto swap_one = [&](void* device, void* host) {
    pagejit::SwapBlocksArgs args;
    args.direction = direction;
    args.from = is_out ? device : host;
    args.to = is_out ? host : device;
    args.block_bytes = kBlockBytes;
    args.from_stride_bytes = kBlockBytes;
    args.to_stride_bytes = kBlockBytes;
    args.pairs = pairs.data();
    args.num_pairs = swapped.num_blocks;
    require(engine_.swap_blocks(args, cuda_.stream()));
  };
  swap_one(k_.data(), k_host);
  swap_one(v_.data(), v_host);
}
