// Block-sparse attention: which tokens rows see by the sparse block that holds them. The rule stands
// with BlockSparseParams.
#pragma once

// The first of the tokens that a query token at `position` sees because they are local: all from
// there on are. A position before the first token is in a block before all others.
PAGEJIT_DEVICE uint32_t first_local_token(const AttentionParams& params, int position) {
  if (position < 0) return 0;
  const uint32_t block_size = static_cast<uint32_t>(params.sparse.block_size);
  const uint32_t num_local = static_cast<uint32_t>(params.sparse.local_blocks);
  const uint32_t end_block = static_cast<uint32_t>(position) / block_size + 1;
  return end_block > num_local ? (end_block - num_local) * block_size : 0;
}

// A query head sees, wherever they are, the sparse blocks k with k % stride equal to this.
PAGEJIT_DEVICE uint32_t seen_residue(const AttentionParams& params, int head, int kv_head_idx) {
  const uint32_t stride = static_cast<uint32_t>(params.sparse.vert_stride);
  const bool by_kv_head = params.sparse.head_step < 0;
  const uint32_t step =
      static_cast<uint32_t>(by_kv_head ? -params.sparse.head_step : params.sparse.head_step);
  // Below 2^32: all factors are below the stride, which is 2^16 at most.
  const uint32_t place = static_cast<uint32_t>(by_kv_head ? kv_head_idx : head) % stride;
  const uint32_t offset = (place * step + static_cast<uint32_t>(params.sparse.offset)) % stride;
  return offset == 0 ? 0 : stride - offset;
}

// What a CTA's rows see together: tokens that no row sees are not read.
struct SparseTiles {
  static constexpr uint32_t kMaxStride = 64;  // beyond it all tokens are read

  uint64_t residues;     // bit r: a head of the group sees the sparse blocks k with k % stride == r
  uint32_t first_local;  // of the first row, whose local blocks begin first

  PAGEJIT_DEVICE void find(const AttentionParams& params, int kv_head_idx, int group_size,
                           int first_position) {
    residues = 0;
    if (static_cast<uint32_t>(params.sparse.vert_stride) <= kMaxStride) {
      const int num_kinds = params.sparse.head_step > 0 ? group_size : 1;
      for (int i = 0; i < num_kinds; ++i) {
        residues |= uint64_t{1} << seen_residue(params, kv_head_idx * group_size + i, kv_head_idx);
      }
    }
    first_local = first_local_token(params, first_position);
  }

  // Whether a row sees one of the tokens [first_token, first_token + num_tokens).
  PAGEJIT_DEVICE bool show(const AttentionParams& params, int first_token, int num_tokens) const {
    const uint32_t last_token = static_cast<uint32_t>(first_token) + num_tokens - 1;
    const uint32_t stride = static_cast<uint32_t>(params.sparse.vert_stride);
    if (last_token >= first_local || stride > kMaxStride) return true;
    const uint32_t block_size = static_cast<uint32_t>(params.sparse.block_size);
    const uint32_t block = static_cast<uint32_t>(first_token) / block_size;
    const uint32_t num_blocks = last_token / block_size - block + 1;
    uint32_t residue = block % stride;
    for (uint32_t i = 0; i < num_blocks; ++i) {
      if (residues >> residue & 1) return true;
      residue = residue + 1 == stride ? 0 : residue + 1;
    }
    return false;
  }
};
