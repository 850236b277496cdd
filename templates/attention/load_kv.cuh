// Streaming K and V: from block ids to rows in shared memory. A group of warps owns a ring of
// stages; its lanes look up the block ids of a stage one tile ahead, and hand each other the row
// offsets when they issue the copies. Until then a lane keeps the id alone: of offsets, a ring of
// many stages would fill the registers before its first tile. Where the tokens of a stage always
// follow each other in one block (PAGEJIT_EVEN_ROWS), one id and the first row are enough for all.
#pragma once

class KvStream {
 public:
  static constexpr int kStages = kConfig.num_stages;

  PAGEJIT_DEVICE KvStream(const AttentionParams& params, const AttentionWork& work,
                          KvStage (&ring)[kConfig.num_stages], int token_group, int row_warp)
      : params_(params),
        work_(work),
        places_(params, work, token_group),
        copies_(params, work, row_warp),
        ring_(ring),
        row_warp_(row_warp) {}

  PAGEJIT_DEVICE int num_tiles() const { return places_.num_tiles(); }
  PAGEJIT_DEVICE int first_token(int tile_idx) const { return places_.first_token(tile_idx); }
  PAGEJIT_DEVICE int find_block(int tile_idx) const { return places_.find_block(tile_idx); }

  // The stages are taken in turn: the oldest copied one is read next, the next one to fill is the
  // one read before.
  PAGEJIT_DEVICE int next_stage() {
    const int stage = read_stage_;
    read_stage_ = read_stage_ + 1 == kStages ? 0 : read_stage_ + 1;
    return stage;
  }

  PAGEJIT_DEVICE void clear_pad() {
    for (int stage = 0; stage < kStages; ++stage) copies_.clear_pad(ring_[stage]);
  }

#if PAGEJIT_LATENT
  // Issues the copies of a tile into the next stage, as one group of asynchronous copies. Past the
  // last tile it is empty, so that the count of groups stays what the waits expect. `block` is
  // find_block(tile_idx).
#else
  // Issues the copies of a tile into the next stage, as two groups of asynchronous copies, K then
  // V. Past the last tile both are empty, so that the count of groups stays what the waits expect.
  // `block` is find_block(tile_idx).
#endif
  PAGEJIT_DEVICE void issue(int tile_idx, int block) {
    KvStage& stage = ring_[write_stage_];
    write_stage_ = write_stage_ + 1 == kStages ? 0 : write_stage_ + 1;
#if PAGEJIT_BLOCK_SPARSE
    const bool has_tile = tile_idx < num_tiles() &&
                          work_.sparse.show(params_, first_token(tile_idx), kConfig.group_tokens);
#else
    const bool has_tile = tile_idx < num_tiles();
#endif
#if PAGEJIT_INVARIANT_BEGIN
    const Valid valid = {places_.num_hidden(tile_idx), places_.num_valid(tile_idx)};
#else
    const Valid valid = {places_.num_valid(tile_idx)};
#endif
    const KvRowOffsets rows = places_.row_offsets(tile_idx, block);
    if (has_tile) copies_.copy_keys(stage, rows, valid);
#if PAGEJIT_TOKEN_SCALES
    if (has_tile) copies_.copy_scales(stage, rows, valid);
#endif
#if PAGEJIT_KV_LISTS
    if (has_tile && row_warp_ == 0 && dev::lane_idx() < kConfig.group_tokens) {
      stage.is_listed[dev::lane_idx()] = block >= 0;
    }
#endif
#if !PAGEJIT_LATENT
    dev::cp_async_commit();
    if (has_tile) copies_.copy_values(stage, rows, valid);
#endif
    dev::cp_async_commit();
  }

 private:
  const AttentionParams& params_;
  const AttentionWork& work_;
  KvPlaces places_;
  KvCopies copies_;
  KvStage (&ring_)[kConfig.num_stages];
  int row_warp_;
  int read_stage_ = 0;
  int write_stage_ = 0;
};

// The block ids of the first kStages tiles, all asked for at once: one latency, not one per stage.
#if PAGEJIT_EVEN_ROWS
class FirstBlocks {
 public:
  PAGEJIT_DEVICE explicit FirstBlocks(const KvStream& stream)
      : block_(stream.find_block(dev::lane_idx() < KvStream::kStages ? dev::lane_idx()
                                                                     : stream.num_tiles())) {
    static_assert(KvStream::kStages <= 32);
  }
  PAGEJIT_DEVICE int of_tile(int tile_idx) const { return dev::shuffle(block_, tile_idx); }

 private:
  int block_;  // of tile `lane`
};
#else
class FirstBlocks {
 public:
  PAGEJIT_DEVICE explicit FirstBlocks(const KvStream& stream) {
#pragma unroll
    for (int tile = 0; tile < KvStream::kStages; ++tile) blocks_[tile] = stream.find_block(tile);
  }
  PAGEJIT_DEVICE int of_tile(int tile_idx) const {
    int block = blocks_[0];
    // A constant index for each tile keeps them in registers.
#pragma unroll
    for (int i = 1; i < KvStream::kStages; ++i) {
      if (tile_idx == i) block = blocks_[i];
    }
    return block;
  }

 private:
  int blocks_[KvStream::kStages];
};
#endif
