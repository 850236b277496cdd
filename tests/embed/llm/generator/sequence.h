// Which blocks of the paged cache belong to which sequence, on the host: a pool of block ids with
// counts of their users, and sequences that may share blocks. Not here: the cache itself
// (attention_layers.h). Thread-safety: one thread.
#pragma once

#include <pagejit/status.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace llm {

inline constexpr int kBlockSize = 16;  // tokens per block: vLLM's default

class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  pagejit::Result<int32_t> take();  // kNotFound where none is free
  void share(int32_t block);        // one more user
  void give_back(int32_t block);    // free again when the last user did

  size_t num_free() const { return free_.size(); }
  size_t num_blocks() const { return num_users_.size(); }

 private:
  std::vector<int> num_users_;
  std::vector<int32_t> free_;
};

// From one block to another, in all layers, before something is written to the second.
struct BlockCopy {
  int64_t from = 0;
  int64_t to = 0;
};

// A prompt and the tokens that were chosen after it. Those before `num_cached` are in the cache.
struct Sequence {
  std::vector<int32_t> tokens;
  size_t prompt_length = 0;
  size_t num_cached = 0;
  std::vector<int32_t> blocks;

  // Takes blocks until `length` tokens have a slot.
  pagejit::Status grow(BlockPool& pool, size_t length);

  // Gives all of them back.
  void release(BlockPool& pool);

  // Begins with the blocks of the longest prefix that `other` has in the cache and that leaves this
  // one at least one token to compute. A block that is shared in part is not shared: it is copied,
  // since both will write behind the common tokens. For a sequence that has no block yet.
  pagejit::Result<std::optional<BlockCopy>> share_prefix(BlockPool& pool, const Sequence& other);
};

// The number of leading blocks that both have.
size_t num_shared_blocks(const Sequence& a, const Sequence& b);

}  // namespace llm
