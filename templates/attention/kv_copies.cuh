// Copying rows of K and V, and their scales, from the caches into a stage.
#pragma once

#if !PAGEJIT_KV_VLLM
// How a warp copies rows of kElements: whole rows at a time, or a part of one row that is as long
// as the others.
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

// What a warp copies: each lane its elements of the rows.
class KvCopies {
 public:
  PAGEJIT_DEVICE KvCopies(const AttentionParams& params, const AttentionWork& work, int row_warp)
      : params_(params), row_warp_(row_warp) {
    const int64_t kv_head_idx = work.kv_head_idx;
    k_ = static_cast<const KvElement*>(params.k_cache) + kv_head_idx * params.k_stride_head;
#if !PAGEJIT_LATENT
    v_ = static_cast<const KvElement*>(params.v_cache) + kv_head_idx * params.v_stride_head;
#endif
#if PAGEJIT_LATENT
#if PAGEJIT_DS_MLA
    k_rest_ = k_ + kCodes + RowCopy<kRest>::column();
#if PAGEJIT_EVEN_ROWS
    k_rest_ += RowCopy<kRest>::first_row(row_warp) * params.k_stride_token;
#endif
    k_rest_ = dev::hold(k_rest_);
#endif
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
  }

  // Clears the pad behind each row, which copies never touch: q is zero there, but 0 * NaN is NaN.
  PAGEJIT_DEVICE void clear_pad(KvStage& stage) const {
#if PAGEJIT_LATENT
    static_assert(kConfig.head_size == kConfig.head_size_padded);
#elif PAGEJIT_KV_INT4
    // No code is NaN, so the pad may hold anything that was written once; it is a multiple of 4
    // bytes.
    if constexpr (kConfig.head_size != kConfig.head_size_padded) {
      for (int i = row_warp_ * 32 + dev::lane_idx(); i < kConfig.group_tokens;
           i += kConfig.row_warps * 32) {
#pragma unroll
        for (int at = kConfig.head_size / 2; at < kConfig.head_size_padded / 2; at += 4) {
          *reinterpret_cast<uint32_t*>(&stage.k[i][at]) = 0;
          *reinterpret_cast<uint32_t*>(&stage.v[i][at]) = 0;
        }
      }
    }
#else
    // Both head sizes have a pad or none: different ones are multiples of 16.
    if constexpr (kConfig.head_size != kConfig.head_size_padded) {
      // 8 elements: head_size is a multiple of 8, the padded one of 16.
      for (int i = row_warp_ * 32 + dev::lane_idx(); i < kConfig.group_tokens;
           i += kConfig.row_warps * 32) {
        *reinterpret_cast<Pad*>(&stage.k[i][kConfig.head_size]) = Pad{};
#if !PAGEJIT_KV_VLLM
        *reinterpret_cast<Pad*>(&stage.v[i][kConfig.head_size_v]) = Pad{};
#else
        // V's pad is 8 rows of tokens.
#pragma unroll
        for (int row = kConfig.head_size_v; row < kConfig.head_size_v_padded; ++row) {
          stage.v[row][i] = 0;
        }
#endif
      }
    }
#endif
  }

  // K of a stage; `rows` are those of the lane's token.
  PAGEJIT_DEVICE void copy_keys(KvStage& stage, const KvRowOffsets& rows, Valid valid) const {
#if PAGEJIT_KV_VLLM
    copy_k(stage, rows.k, valid);
#else
    copy_rows<kKeyUnits>(stage.k, k_, rows.k, params_.k_stride_token, valid);
#endif
#if PAGEJIT_DS_MLA
    copy_rows<kRest, kCodes>(stage.k, k_rest_, rows.k, params_.k_stride_token, valid);
#endif
  }
#if !PAGEJIT_LATENT
  PAGEJIT_DEVICE void copy_values(KvStage& stage, const KvRowOffsets& rows, Valid valid) const {
#if PAGEJIT_KV_VLLM
    copy_v(stage, rows.v, valid);
#else
    copy_rows<kValueUnits>(stage.v, v_, rows.v, params_.v_stride_token, valid);
#endif
  }
#endif
#if PAGEJIT_TOKEN_SCALES
  // Those of K and of V together, since the softmax needs both. Of tokens that do not exist they
  // are zero.
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
 private:
#if PAGEJIT_DS_MLA
  // A row's 41 chunks of 16 bytes are no whole number of equal parts: 32 of them, a warp's, hold
  // the codes, and 9 the scales and the rotated part, of three rows at a time.
  static constexpr int kCodes = pagejit_shared::kDsMlaLatent;
  static constexpr int kKeyUnits = kCodes;
  static constexpr int kRest = pagejit_shared::kDsMlaRowBytes - kCodes;
#elif !PAGEJIT_KV_VLLM
  static constexpr int kKeyUnits = pagejit_shared::kv_units(kConfig, kConfig.head_size);
  static constexpr int kValueUnits = pagejit_shared::kv_units(kConfig, kConfig.head_size_v);
#endif
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

  // v [head_size_v][pitch] <- [head_size_v, block_size]. Tokens behind the last one are written as
  // zeros: in the cache they may be NaN.
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
  // rows [group_tokens][pitch] <- kElements of cache rows from kFirst on; `offset` as in
  // KvRowOffsets. A warp copies kRowsPerPass rows at a time, so that each lane keeps its columns.
  template <int kElements, int kFirst = 0, int kPitch>
  PAGEJIT_DEVICE void copy_rows(KvElement (&rows)[kConfig.group_tokens][kPitch],
                                const KvElement* cache, int64_t offset,
                                [[maybe_unused]] int64_t stride_token,
                                [[maybe_unused]] Valid valid) const {
    using Copy = RowCopy<kElements>;
    constexpr int kRowsAtOnce = Copy::kRowsPerPass * kConfig.row_warps;
    constexpr int kPasses = (kConfig.group_tokens + kRowsAtOnce - 1) / kRowsAtOnce;
    const int first_row = Copy::first_row(row_warp_);
    const int column = kFirst + Copy::column();
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

#endif

  const AttentionParams& params_;
  // [num_blocks, block_size, head_size] of this KV head, by strides, from the element that this
  // lane copies and, PAGEJIT_EVEN_ROWS, from the row of a stage.
  const KvElement* k_;
#if PAGEJIT_DS_MLA
  const KvElement* k_rest_;  // the same behind the codes
#endif
#if !PAGEJIT_LATENT
  const KvElement* v_;
#endif
#if PAGEJIT_TOKEN_SCALES
  const float* k_scale_;  // [num_blocks, block_size] of this KV head, by strides
  const float* v_scale_;
#endif
  int row_warp_;
};
