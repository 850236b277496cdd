// Where the tokens of a CTA's tiles lie: the block ids or slots that lanes look up, and the row
// offsets that follow from them.
#pragma once

#if PAGEJIT_KV_VLLM
// Elements of a key that follow each other: 16 bytes.
constexpr int kX = 16 / static_cast<int>(sizeof(KvElement));

#endif
// Where a row starts in the caches, in KvElement: that of the lane's own token or,
// PAGEJIT_EVEN_ROWS, of the first token. Anything where there is no token, whose row is filled with
// zeros.
struct KvRowOffsets {
  int64_t k;
  int64_t v;
#if PAGEJIT_TOKEN_SCALES
  int64_t k_scale;
  int64_t v_scale;
#endif
};

// The tokens of a group of warps in each tile of the CTA.
class KvPlaces {
 public:
  PAGEJIT_DEVICE KvPlaces(const AttentionParams& params, const AttentionWork& work, int token_group)
      : params_(params), work_(work), token_group_(token_group) {
#if PAGEJIT_KV_CSR
    block_ids_ = params.kv_indices + dev::load_global_nc(params.kv_indptr + work.seq_idx);
#elif PAGEJIT_KV_LISTS
    list_ = params.token_lists + work.seq_idx * static_cast<int64_t>(params.token_list_stride);
#if PAGEJIT_KV_POSITIONS
    const int table_row = params.query_seqs == nullptr
                              ? work.seq_idx
                              : dev::load_global_nc(params.query_seqs + work.seq_idx);
    block_ids_ = params.block_table + table_row * static_cast<int64_t>(params.block_table_stride);
#endif
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
    return work_.token_begin + tile_idx * Traits::kTileTokens + token_group_ * kConfig.group_tokens;
  }
  // Tokens of this group in a tile; beyond group_tokens where the split goes on, 0 or less where it
  // has ended.
  PAGEJIT_DEVICE int num_valid(int tile_idx) const {
    return work_.token_end - first_token(tile_idx);
  }
#if PAGEJIT_INVARIANT_BEGIN
  // Tokens of this group in a tile before the first one that a row sees: they may be anything.
  PAGEJIT_DEVICE int num_hidden(int tile_idx) const {
    return work_.range_begin - first_token(tile_idx);
  }
#endif

  // The block of token `lane` of this group in a tile, or of all its tokens: one load per lane,
  // coalesced. 0 where there is no token or no block.
  PAGEJIT_DEVICE int find_block([[maybe_unused]] int tile_idx) const {
#if PAGEJIT_KV_CONTIGUOUS
    return 0;
#elif PAGEJIT_KV_LISTS
    return find_slot(tile_idx);
#else
    const int token = first_token(tile_idx) + lane_of_row();
    bool exists =
        tile_idx < num_tiles_ && lane_of_row() < kConfig.group_tokens && token < work_.token_end;
#if PAGEJIT_INVARIANT_BEGIN
    exists &= token >= work_.range_begin;
#endif
    const int block_position = static_cast<int>(static_cast<uint32_t>(token) / kConfig.block_size);
    const int block_id = dev::load_global_nc_if(exists, block_ids_ + block_position);
#if PAGEJIT_DEBUG
    if (block_id < 0 || (params_.num_blocks > 0 && block_id >= params_.num_blocks)) {
      report_debug(params_, pagejit_shared::kDebugBadBlockId, work_.seq_idx, block_position,
                   block_id);
      return 0;
    }
#endif
    return block_id;
#endif
  }

  // Of the lane's token in a tile; `block` is find_block(tile_idx).
  PAGEJIT_DEVICE KvRowOffsets row_offsets(int tile_idx, [[maybe_unused]] int block) const {
    [[maybe_unused]] const int token = first_token(tile_idx) + lane_of_row();
#if PAGEJIT_KV_CONTIGUOUS
    const int64_t row = static_cast<int64_t>(first_row_) + token;
#if PAGEJIT_TOKEN_SCALES
    return {row * params_.k_stride_token, row * params_.v_stride_token,
            row * params_.k_scale_stride_token, row * params_.v_scale_stride_token};
#else
    return {row * params_.k_stride_token, row * params_.v_stride_token};
#endif
#else
#if PAGEJIT_KV_LISTS
    // `block` is a slot; what is not there has no row.
    if (block < 0) return {-1, -1};
    const int64_t token_in_block = place_in_block(block);
    block /= kConfig.block_size;
#else
    const int64_t token_in_block = place_in_block(token);
#endif
    const int64_t k_block = block * static_cast<int64_t>(params_.k_stride_block);
    const int64_t v_block = block * static_cast<int64_t>(params_.v_stride_block);
#if PAGEJIT_KV_VLLM
    return {k_block + token_in_block * kX, v_block + token_in_block};
#elif PAGEJIT_TOKEN_SCALES
    return {k_block + token_in_block * params_.k_stride_token,
            v_block + token_in_block * params_.v_stride_token,
            block * static_cast<int64_t>(params_.k_scale_stride_block) +
                token_in_block * params_.k_scale_stride_token,
            block * static_cast<int64_t>(params_.v_scale_stride_block) +
                token_in_block * params_.v_scale_stride_token};
#else
    return {k_block + token_in_block * params_.k_stride_token,
            v_block + token_in_block * params_.v_stride_token};
#endif
#endif
  }

 private:
  // Which token of a stage this lane looks up.
  PAGEJIT_DEVICE static int lane_of_row() {
#if PAGEJIT_EVEN_ROWS
    return 0;
#else
    return dev::lane_idx();
#endif
  }

  // Of a token, or with even rows of a stage's first one.
  PAGEJIT_DEVICE static int place_in_block(int token) {
#if PAGEJIT_EVEN_ROWS
    // Stages begin at multiples of their size.
    if (kConfig.block_size == kConfig.group_tokens) return 0;
#endif
    return static_cast<int>(static_cast<uint32_t>(token) % kConfig.block_size);
  }

#if PAGEJIT_KV_LISTS
  // The slot of entry `lane` of this group in a tile; negative where there is none, or a padding
  // entry.
  PAGEJIT_DEVICE int find_slot(int tile_idx) const {
    constexpr int kNone = -1;
    const int place = first_token(tile_idx) + dev::lane_idx();
    const bool exists =
        tile_idx < num_tiles_ && dev::lane_idx() < kConfig.group_tokens && place < work_.token_end;
    int slot = dev::load_global_nc_if(exists, list_ + place);
    if (!exists) slot = kNone;
#if PAGEJIT_KV_POSITIONS
    const int position = static_cast<int>(static_cast<uint32_t>(slot) / kConfig.block_size);
#if PAGEJIT_DEBUG
    if (slot >= 0 && position >= params_.max_blocks_per_seq) {
      report_debug(params_, pagejit_shared::kDebugBadListEntry, work_.seq_idx, place, slot);
      return kNone;
    }
#endif
    const int block = dev::load_global_nc_if(slot >= 0, block_ids_ + position);
    const int in_block = static_cast<int>(static_cast<uint32_t>(slot) % kConfig.block_size);
#if PAGEJIT_DEBUG
    if (slot >= 0 && (block < 0 || (params_.num_blocks > 0 && block >= params_.num_blocks))) {
      report_debug(params_, pagejit_shared::kDebugBadBlockId, work_.seq_idx, position, block);
      return kNone;
    }
#endif
    if (slot >= 0) slot = block * kConfig.block_size + in_block;
#elif PAGEJIT_DEBUG
    if (slot >= 0 && params_.num_blocks > 0 && slot / kConfig.block_size >= params_.num_blocks) {
      report_debug(params_, pagejit_shared::kDebugBadListEntry, work_.seq_idx, place, slot);
      return kNone;
    }
#endif
    return slot;
  }

#endif
  const AttentionParams& params_;
  const AttentionWork& work_;
#if PAGEJIT_KV_CONTIGUOUS
  int first_row_;  // of this sequence
#elif PAGEJIT_KV_LISTS
  const int* list_;  // of this query token
#endif
#if PAGEJIT_KV_BLOCK_IDS
  const int* block_ids_;  // of this sequence's blocks
#endif
  int token_group_;
  int num_tiles_;
};
