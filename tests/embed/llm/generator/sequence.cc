#include "sequence.h"

#include <algorithm>
#include <string>

namespace llm {

using pagejit::Result;
using pagejit::Status;
using pagejit::StatusCode;

BlockPool::BlockPool(int num_blocks) : num_users_(static_cast<size_t>(num_blocks), 0) {
  // Handed out from the highest down, and every other one first, so that no sequence has its blocks
  // in a row and a kernel that ignored the table would be found out.
  for (int32_t block = 0; block < num_blocks; block += 2) free_.push_back(block);
  for (int32_t block = 1; block < num_blocks; block += 2) free_.push_back(block);
}

Result<int32_t> BlockPool::take() {
  if (free_.empty()) {
    return Status(StatusCode::kNotFound,
                  "all " + std::to_string(num_blocks()) + " cache blocks are in use");
  }
  const int32_t block = free_.back();
  free_.pop_back();
  num_users_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::share(int32_t block) { ++num_users_[static_cast<size_t>(block)]; }

void BlockPool::give_back(int32_t block) {
  if (--num_users_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

Status Sequence::grow(BlockPool& pool, size_t length) {
  while (blocks.size() * kBlockSize < length) {
    const Result<int32_t> block = pool.take();
    if (!block) return block.status();
    blocks.push_back(*block);
  }
  return {};
}

void Sequence::release(BlockPool& pool) {
  for (const int32_t block : blocks) pool.give_back(block);
  blocks.clear();
  num_cached = 0;
}

Result<std::optional<BlockCopy>> Sequence::share_prefix(BlockPool& pool, const Sequence& other) {
  const size_t limit = std::min(other.num_cached, tokens.size() - 1);
  size_t length = 0;
  while (length < limit && tokens[length] == other.tokens[length]) ++length;
  const size_t num_whole = length / kBlockSize;
  for (size_t i = 0; i < num_whole; ++i) {
    blocks.push_back(other.blocks[i]);
    pool.share(other.blocks[i]);
  }
  num_cached = length;
  std::optional<BlockCopy> copy;
  if (length % kBlockSize != 0) {
    const Result<int32_t> block = pool.take();
    if (!block) return block.status();
    blocks.push_back(*block);
    copy = BlockCopy{other.blocks[num_whole], *block};
  }
  return copy;
}

size_t num_shared_blocks(const Sequence& a, const Sequence& b) {
  const auto [first, second] =
      std::mismatch(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end());
  return static_cast<size_t>(first - a.blocks.begin());
}

}  // namespace llm
