// Streaming K and V: from block ids to rows in shared memory. A group of warps owns a ring of
// stages; its lanes look up the block ids of a stage one tile ahead, and hand each other the row
// offsets when they issue the copies. Until then a lane keeps the id alone: of offsets, a ring of
// many stages would fill the registers before its first tile. Where the tokens of a stage always
// follow each other in one block (PAGEJIT_EVEN_ROWS), one id and the first row are enough for all.
#pragma once

// Where a row starts in the caches, in KvElement: that of the lane's own token or, PAGEJIT_EVEN_ROWS,
// of the first token. Anything where there is no token, whose row is filled with zeros.
struct KvRowOffsets {
  int64_t k;
  int64_t v;
#if PAGEJIT_TOKEN_SCALES
  int64_t k_scale;
  int64_t v_scale;
#endif
};

#if !PAGEJIT_KV_VLLM
// How a warp copies rows of kElements: whole rows at a time, or a part of one row that is as long as
// the others.
template <int kElements>
struct RowCopy {
  // What a lane copies at once.
  static constexpr int kBytes = pagejit_shared::kv_copy_bytes(kConfig);
  static constexpr int kChunkElements = kBytes / static_cast<int>(sizeof(KvElement));
  static constexpr int kChunks = kElements / kChunkElements;

  PAGEJIT_DEVICE static constexpr int least_parts() {
    int parts = (kChunks + 31) / 32;
    while (kChunks % parts != 0) ++parts;
    return parts;
  }
  static constexpr int kParts = least_parts();
  static constexpr int kPartChunks = kChunks / kParts;
  static constexpr int kRowsPerPass = 32 / kPartChunks;

  // Where a lane begins: the row among those of a stage, and the element.
  PAGEJIT_DEVICE static int first_row(int row_warp) {
    return row_warp * kRowsPerPass + dev::lane_idx() / kPartChunks;
  }
  PAGEJIT_DEVICE static int column() { return dev::lane_idx() % kPartChunks * kChunkElements; }
};
#endif

class KvStream {
 public:
  static constexpr int kStages = kConfig.num_stages;
#if !PAGEJIT_KV_VLLM
  static constexpr int kKeyUnits = pagejit_shared::kv_units(kConfig, kConfig.head_size);
  static constexpr int kValueUnits = pagejit_shared::kv_units(kConfig, kConfig.head_size_v);
#endif

  PAGEJIT_DEVICE KvStream(const AttentionParams& params, const AttentionWork& work,
                          KvStage (&ring)[kConfig.num_stages], int token_group, int row_warp)
      : params_(params), work_(work), ring_(ring), token_group_(token_group), row_warp_(row_warp) {
    const int64_t kv_head_idx = work.kv_head_idx;
    k_ = static_cast<const KvElement*>(params.k_cache) + kv_head_idx * params.k_stride_head;
#if !PAGEJIT_LATENT
    v_ = static_cast<const KvElement*>(params.v_cache) + kv_head_idx * params.v_stride_head;
#endif
#if PAGEJIT_LATENT
    k_ += RowCopy<kKeyUnits>::column();
#if PAGEJIT_EVEN_ROWS
    k_ += RowCopy<kKeyUnits>::first_row(row_warp) * params.k_stride_token;
#endif
    k_ = dev::hold(k_);
#elif !PAGEJIT_KV_VLLM
    k_ += RowCopy<kKeyUnits>::column();
    v_ += RowCopy<kValueUnits>::column();
#if PAGEJIT_EVEN_ROWS
    k_ += RowCopy<kKeyUnits>::first_row(row_warp) * params.k_stride_token;
    v_ += RowCopy<kValueUnits>::first_row(row_warp) * params.v_stride_token;
#endif
    // Held, or each stage would have them multiplied out from the strides.
    k_ = dev::hold(k_);
    v_ = dev::hold(v_);
#endif
#if PAGEJIT_TOKEN_SCALES
    k_scale_ = params.k_scale + kv_head_idx * params.k_scale_stride_head;
    v_scale_ = params.v_scale + kv_head_idx * params.v_scale_stride_head;
#endif
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

  // The stages are taken in turn: the oldest copied one is read next, the next one to fill is the
  // one read before.
  PAGEJIT_DEVICE int next_stage() {
    const int stage = read_stage_;
    read_stage_ = read_stage_ + 1 == kStages ? 0 : read_stage_ + 1;
    return stage;
  }

  // Clears the pad behind each row, which copies never touch: q is zero there, but 0 * NaN is NaN.
  PAGEJIT_DEVICE void clear_pad() {
#if PAGEJIT_LATENT
    static_assert(kConfig.head_size == kConfig.head_size_padded);
#elif PAGEJIT_KV_INT4
    // No code is NaN, so the pad may hold anything that was written once; it is a multiple of 4 bytes.
    if constexpr (kConfig.head_size != kConfig.head_size_padded) {
      for (int stage = 0; stage < kStages; ++stage) {
        for (int i = row_warp_ * 32 + dev::lane_idx(); i < kConfig.group_tokens;
             i += kConfig.row_warps * 32) {
#pragma unroll
          for (int at = kConfig.head_size / 2; at < kConfig.head_size_padded / 2; at += 4) {
            *reinterpret_cast<uint32_t*>(&ring_[stage].k[i][at]) = 0;
            *reinterpret_cast<uint32_t*>(&ring_[stage].v[i][at]) = 0;
          }
        }
      }
    }
#else
    // Both head sizes have a pad or none: different ones are multiples of 16.
    if constexpr (kConfig.head_size != kConfig.head_size_padded) {
      // 8 elements: head_size is a multiple of 8, the padded one of 16.
      for (int stage = 0; stage < kStages; ++stage) {
        for (int i = row_warp_ * 32 + dev::lane_idx(); i < kConfig.group_tokens;
             i += kConfig.row_warps * 32) {
          *reinterpret_cast<Pad*>(&ring_[stage].k[i][kConfig.head_size]) = Pad{};
#if !PAGEJIT_KV_VLLM
          *reinterpret_cast<Pad*>(&ring_[stage].v[i][kConfig.head_size_v]) = Pad{};
#else
          // V's pad is 8 rows of tokens.
#pragma unroll
          for (int row = kConfig.head_size_v; row < kConfig.head_size_v_padded; ++row) {
            ring_[stage].v[row][i] = 0;
          }
#endif
        }
      }
    }
#endif
  }

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

#if PAGEJIT_LATENT
#if PAGEJIT_KV_LISTS
  // The slot of entry `lane` of this group in a tile; negative where there is none, or a padding entry.
  PAGEJIT_DEVICE int find_slot(int tile_idx) const {
    constexpr int kNone = -1;
    const int place = first_token(tile_idx) + dev::lane_idx();
    const bool exists = tile_idx < num_tiles_ && dev::lane_idx() < kConfig.group_tokens &&
                        place < work_.token_end;
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
    const bool has_tile = tile_idx < num_tiles_ &&
                          work_.sparse.show(params_, first_token(tile_idx), kConfig.group_tokens);
#else
    const bool has_tile = tile_idx < num_tiles_;
#endif
#if PAGEJIT_INVARIANT_BEGIN
    const Valid valid = {num_hidden(tile_idx), num_valid(tile_idx)};
#else
    const Valid valid = {num_valid(tile_idx)};
#endif
    const KvRowOffsets rows = row_offsets(tile_idx, block);
#if PAGEJIT_KV_VLLM
    if (has_tile) copy_k(stage, rows.k, valid);
    dev::cp_async_commit();
    if (has_tile) copy_v(stage, rows.v, valid);
#elif PAGEJIT_LATENT
    if (has_tile) copy_rows<kKeyUnits>(stage.k, k_, rows.k, params_.k_stride_token, valid);
#if PAGEJIT_KV_LISTS
    if (has_tile && row_warp_ == 0 && dev::lane_idx() < kConfig.group_tokens) {
      stage.is_listed[dev::lane_idx()] = block >= 0;
    }
#endif
#else
    if (has_tile) copy_rows<kKeyUnits>(stage.k, k_, rows.k, params_.k_stride_token, valid);
#if PAGEJIT_TOKEN_SCALES
    if (has_tile) copy_scales(stage, rows, valid);
#endif
    dev::cp_async_commit();
    if (has_tile) copy_rows<kValueUnits>(stage.v, v_, rows.v, params_.v_stride_token, valid);
#endif
    dev::cp_async_commit();
  }

 private:
  // Which tokens of a group's part of a tile are copied; the others become zeros.
  struct Valid {
#if PAGEJIT_INVARIANT_BEGIN
    int begin;
    int end;
    PAGEJIT_DEVICE bool has(int token) const { return token >= begin && token < end; }
    PAGEJIT_DEVICE Valid from(int token) const { return {begin - token, end - token}; }
#else
    int end;
    PAGEJIT_DEVICE bool has(int token) const { return token < end; }
    PAGEJIT_DEVICE Valid from(int token) const { return {end - token}; }
#endif
  };

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

#if PAGEJIT_KV_F32
  struct alignas(16) Pad {  // rows begin at multiples of 16 bytes
    uint32_t word[8];
  };
#else
  struct alignas(8 * sizeof(KvElement)) Pad {
    uint32_t word[2 * sizeof(KvElement)];
  };
#endif

#if PAGEJIT_KV_VLLM
  static constexpr int kX = 16 / static_cast<int>(sizeof(KvElement));

  // k [group_tokens][pitch] <- [head_size / x, block_size, x]; lane i holds the offset of token i.
  // Neighbouring lanes copy neighbouring tokens, which lie 16 bytes apart.
  PAGEJIT_DEVICE void copy_k(KvStage& stage, int64_t offset_of_lane, Valid valid) const {
    constexpr int kThreads = kConfig.row_warps * 32;
    constexpr int kChunks = kConfig.group_tokens * (kConfig.head_size / kX);
    const int token = dev::lane_idx() % kConfig.group_tokens;
    const KvElement* from = k_ + dev::shuffle(offset_of_lane, token);
#pragma unroll
    for (int first = 0; first < kChunks; first += kThreads) {
      const int chunk = (first + row_warp_ * 32 + dev::lane_idx()) / kConfig.group_tokens;
      if (kChunks % kThreads == 0 || chunk < kConfig.head_size / kX) {
        dev::cp_async_16(&stage.k[token][chunk * kX],
                         from + chunk * (static_cast<int64_t>(kConfig.block_size) * kX),
                         valid.has(token));
      }
    }
  }

  // v [head_size_v][pitch] <- [head_size_v, block_size]. Tokens behind the last one are written as zeros:
  // in the cache they may be NaN.
  PAGEJIT_DEVICE void copy_v(KvStage& stage, int64_t offset_of_lane, Valid valid) const {
    constexpr int kCopyBytes = pagejit_shared::v_copy_bytes(kConfig);
    constexpr int kCopyTokens = kCopyBytes / static_cast<int>(sizeof(KvElement));
    constexpr int kElementCopies = kConfig.group_tokens / kCopyTokens;
    constexpr int kThreads = kConfig.row_warps * 32;
    constexpr int kCopies = kConfig.head_size_v * kElementCopies;
    const int token = dev::lane_idx() % kElementCopies * kCopyTokens;
    const KvElement* from = v_ + dev::shuffle(offset_of_lane, token);
    int valid_bytes = (valid.end - token) * static_cast<int>(sizeof(KvElement));
    valid_bytes = valid_bytes < 0 ? 0 : valid_bytes > kCopyBytes ? kCopyBytes : valid_bytes;
#pragma unroll
    for (int first = 0; first < kCopies; first += kThreads) {
      const int element = (first + row_warp_ * 32 + dev::lane_idx()) / kElementCopies;
      if (kCopies % kThreads == 0 || element < kConfig.head_size_v) {
        dev::cp_async_part<kCopyBytes>(&stage.v[element][token],
                                       from + element * static_cast<int64_t>(kConfig.block_size),
                                       valid_bytes);
      }
    }
  }

#else
  // rows [group_tokens][pitch] <- cache rows; `offset` as in KvRowOffsets. A warp copies
  // kRowsPerPass rows at a time, so that each lane keeps its columns.
  template <int kElements, int kPitch>
  PAGEJIT_DEVICE void copy_rows(KvElement (&rows)[kConfig.group_tokens][kPitch],
                                const KvElement* cache, int64_t offset,
                                [[maybe_unused]] int64_t stride_token,
                                [[maybe_unused]] Valid valid) const {
    using Copy = RowCopy<kElements>;
    constexpr int kRowsAtOnce = Copy::kRowsPerPass * kConfig.row_warps;
    constexpr int kPasses = (kConfig.group_tokens + kRowsAtOnce - 1) / kRowsAtOnce;
    const int first_row = Copy::first_row(row_warp_);
    const int column = Copy::column();
#if !PAGEJIT_KV_LISTS
    const Valid valid_rows = valid.from(first_row);  // constants are compared with it
#endif
    const bool has_column =
        32 % Copy::kPartChunks == 0 || dev::lane_idx() < Copy::kRowsPerPass * Copy::kPartChunks;
#if PAGEJIT_EVEN_ROWS
    const KvElement* from = cache + offset;
#endif
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = first_row + pass * kRowsAtOnce;
#if PAGEJIT_KV_LISTS
      const int64_t row_offset = dev::shuffle(offset, row % 32);
      const KvElement* from = cache + row_offset;
      const bool is_valid = row_offset >= 0;
#else
#if !PAGEJIT_EVEN_ROWS
      const KvElement* from = cache + dev::shuffle(offset, row % 32);
#endif
      const bool is_valid = valid_rows.has(pass * kRowsAtOnce);
#endif
      const bool has_row = kConfig.group_tokens % kRowsAtOnce == 0 || row < kConfig.group_tokens;
      if (has_column && has_row) {
#pragma unroll
        for (int part = 0; part < Copy::kParts; ++part) {
          const int further = part * Copy::kPartChunks * Copy::kChunkElements;
          copy_chunk(&rows[row][column + further], from + further, is_valid);
        }
      }
#if PAGEJIT_EVEN_ROWS
      from += kRowsAtOnce * stride_token;
#endif
    }
  }

  PAGEJIT_DEVICE static void copy_chunk(KvElement* shared, const KvElement* global, bool valid) {
    if constexpr (pagejit_shared::kv_copy_bytes(kConfig) == 16) {
      dev::cp_async_16(shared, global, valid);
    } else if constexpr (pagejit_shared::kv_copy_bytes(kConfig) == 8) {
      dev::cp_async_8(shared, global, valid);
    } else {
      dev::cp_async_4(shared, global, valid);
    }
  }

#if PAGEJIT_TOKEN_SCALES
  // Those of K and of V together, since the softmax needs both. Of tokens that do not exist they are
  // zero.
  PAGEJIT_DEVICE void copy_scales(KvStage& stage, const KvRowOffsets& rows, Valid valid) const {
    const int lane = dev::lane_idx();
    if (row_warp_ != 0 || lane >= kConfig.group_tokens) return;
#if PAGEJIT_EVEN_ROWS
    const float* k_scale = k_scale_ + rows.k_scale + lane * params_.k_scale_stride_token;
    const float* v_scale = v_scale_ + rows.v_scale + lane * params_.v_scale_stride_token;
#else
    const float* k_scale = k_scale_ + rows.k_scale;
    const float* v_scale = v_scale_ + rows.v_scale;
#endif
    dev::cp_async_4(&stage.k_scale[lane], k_scale, valid.has(lane));
    dev::cp_async_4(&stage.v_scale[lane], v_scale, valid.has(lane));
  }

#endif
#endif

  const AttentionParams& params_;
  const AttentionWork& work_;
  KvStage (&ring_)[kConfig.num_stages];
  // [num_blocks, block_size, head_size] of this KV head, by strides, from the element that this lane
  // copies and, PAGEJIT_EVEN_ROWS, from the row of a stage.
  const KvElement* k_;
#if !PAGEJIT_LATENT
  const KvElement* v_;
#endif
#if PAGEJIT_TOKEN_SCALES
  const float* k_scale_;  // [num_blocks, block_size] of this KV head, by strides
  const float* v_scale_;
#endif
#if PAGEJIT_KV_CONTIGUOUS
  int first_row_;  // of this sequence
#elif PAGEJIT_KV_LISTS
  const int* list_;  // of this query token
#endif
#if PAGEJIT_KV_BLOCK_IDS
  const int* block_ids_;  // of this sequence's blocks
#endif
  int token_group_;
  int row_warp_;
  int num_tiles_;
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
