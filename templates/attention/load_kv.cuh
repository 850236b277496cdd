// Streaming K and V: from block ids to rows in shared memory. A group of warps owns a ring of
// stages; its lanes look up the block ids of a stage one tile ahead, and hand each other the row
// offsets when they issue the copies.
#pragma once

// Where one token's row starts in the caches, in elements; 0 where there is no token, whose row is
// filled with zeros.
struct KvRowOffsets {
  int64_t k;
  int64_t v;
};

template <AttentionConfig C>
class KvStream {
 public:
  using Traits = AttentionTraits<C>;
  static constexpr int kStages = C.num_stages;

  PAGEJIT_DEVICE KvStream(const AttentionParams& params, const AttentionWork& work,
                          KvStage<C> (&ring)[C.num_stages], int token_group, int row_warp)
      : params_(params),
        work_(work),
        ring_(ring),
        token_group_(token_group),
        row_warp_(row_warp) {
    const int64_t kv_head_idx = work.kv_head_idx;
    k_ = static_cast<const uint16_t*>(params.k_cache) + kv_head_idx * params.k_stride_head;
    v_ = static_cast<const uint16_t*>(params.v_cache) + kv_head_idx * params.v_stride_head;
#if PAGEJIT_KV_CSR
    block_ids_ = params.kv_indices + dev::load_global_nc(params.kv_indptr + work.seq_idx);
#elif PAGEJIT_KV_CONTIGUOUS
    first_row_ = dev::load_global_nc(params.kv_start_loc + work.seq_idx);
#else
    block_ids_ =
        params.block_table + work.seq_idx * static_cast<int64_t>(params.block_table_stride);
#endif
    num_tiles_ =
        (work.token_end - work.token_begin + Traits::kTileTokens - 1) / Traits::kTileTokens;
  }

  PAGEJIT_DEVICE int num_tiles() const { return num_tiles_; }
  // The first token of this group in a tile.
  PAGEJIT_DEVICE int first_token(int tile_idx) const {
    return work_.token_begin + tile_idx * Traits::kTileTokens + token_group_ * C.group_tokens;
  }
  // Tokens of this group in a tile; beyond group_tokens where the split goes on, 0 or less where it
  // has ended.
  PAGEJIT_DEVICE int num_valid(int tile_idx) const {
    return work_.token_end - first_token(tile_idx);
  }

  // The stages are taken in turn: the oldest copied one is read next, the next one to fill is the
  // one read before.
  PAGEJIT_DEVICE const KvStage<C>& next_stage() {
    const KvStage<C>& stage = ring_[read_stage_];
    read_stage_ = read_stage_ + 1 == kStages ? 0 : read_stage_ + 1;
    return stage;
  }

  // Clears the pad behind each row, which copies never touch: q is zero there, but 0 * NaN is NaN.
  PAGEJIT_DEVICE void clear_pad() {
    if constexpr (C.head_size != C.head_size_padded) {
      constexpr int kRows = kStages * 2 * C.group_tokens;
      uint16_t* rows =
          reinterpret_cast<uint16_t*>(&ring_);  // K and V rows of all stages follow each other
      for (int row = row_warp_ * 32 + dev::lane_idx(); row < kRows; row += C.row_warps * 32) {
        // 8 elements: head_size is a multiple of 8, the padded one of 16.
        *reinterpret_cast<Chunk*>(rows + row * Traits::kPitch + C.head_size) = Chunk{};
      }
    }
  }

  // The row of token `lane` of this group in a tile. One load of a block id per lane, coalesced.
  PAGEJIT_DEVICE KvRowOffsets locate(int tile_idx) const {
    const int lane = dev::lane_idx();
    const int token = first_token(tile_idx) + lane;
    if (tile_idx >= num_tiles_ || lane >= C.group_tokens || token >= work_.token_end) return {0, 0};
#if PAGEJIT_KV_CONTIGUOUS
    const int64_t row = static_cast<int64_t>(first_row_) + token;
    return {row * params_.k_stride_token, row * params_.v_stride_token};
#else
    const int block_position = static_cast<int>(static_cast<uint32_t>(token) / C.block_size);
    const int64_t token_in_block = static_cast<uint32_t>(token) % C.block_size;
    const int block_id = dev::load_global_nc(block_ids_ + block_position);
#if PAGEJIT_DEBUG
    if (block_id < 0 || (params_.num_blocks > 0 && block_id >= params_.num_blocks)) {
      report_debug(params_, pagejit_shared::kDebugBadBlockId, work_.seq_idx, block_position,
                   block_id);
      return {0, 0};
    }
#endif
    return {block_id * static_cast<int64_t>(params_.k_stride_block) +
                token_in_block * params_.k_stride_token,
            block_id * static_cast<int64_t>(params_.v_stride_block) +
                token_in_block * params_.v_stride_token};
#endif
  }

  // Issues the copies of a tile into the next stage, as two groups of asynchronous copies, K then
  // V. Past the last tile both are empty, so that the count of groups stays what the waits expect.
  PAGEJIT_DEVICE void issue(int tile_idx, const KvRowOffsets& rows) {
    KvStage<C>& stage = ring_[write_stage_];
    write_stage_ = write_stage_ + 1 == kStages ? 0 : write_stage_ + 1;
    const bool has_tile = tile_idx < num_tiles_;
    const int valid = num_valid(tile_idx);
    if (has_tile) copy_rows(stage.k, k_, rows.k, valid);
    dev::cp_async_commit();
    if (has_tile) copy_rows(stage.v, v_, rows.v, valid);
    dev::cp_async_commit();
  }

 private:
  struct alignas(16) Chunk {
    uint32_t word[4];
  };

  // rows [group_tokens][pitch] <- cache rows; lane i holds the offset of row i. A warp copies whole
  // rows, kRowsPerPass at a time, so that each lane keeps one column.
  PAGEJIT_DEVICE void copy_rows(uint16_t (&rows)[C.group_tokens][Traits::kPitch],
                                const uint16_t* cache, int64_t offset_of_lane,
                                int num_valid) const {
    constexpr int kRowsAtOnce = Traits::kRowsPerPass * C.row_warps;
    constexpr int kPasses = (C.group_tokens + kRowsAtOnce - 1) / kRowsAtOnce;
    const int lane = dev::lane_idx();
    const int first_row = row_warp_ * Traits::kRowsPerPass + lane / Traits::kRowChunks;
    const int column = lane % Traits::kRowChunks * 8;
    const bool has_column =
        32 % Traits::kRowChunks == 0 || lane < Traits::kRowsPerPass * Traits::kRowChunks;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = first_row + pass * kRowsAtOnce;
      const int64_t offset = dev::shuffle(offset_of_lane, row % 32);
      const bool has_row = C.group_tokens % kRowsAtOnce == 0 || row < C.group_tokens;
      if (has_column && has_row) {
        dev::cp_async_16(&rows[row][column], cache + offset + column, row < num_valid);
      }
    }
  }

  const AttentionParams& params_;
  const AttentionWork& work_;
  KvStage<C> (&ring_)[C.num_stages];
  const uint16_t* k_;  // [num_blocks, block_size, head_size] of this KV head, by strides
  const uint16_t* v_;
#if PAGEJIT_KV_CONTIGUOUS
  int first_row_;  // of this sequence
#else
  const int* block_ids_;  // of this sequence's blocks
#endif
  int token_group_;
  int row_warp_;
  int num_tiles_;
  int read_stage_ = 0;
  int write_stage_ = 0;
};
