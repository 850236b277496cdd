// What one CTA does: its sequence, KV head and range of tokens, found from the length on the
// device; and what a debug kernel says when it finds something wrong.
#pragma once

// The first finder's report stays; thread-safe across the grid.
PAGEJIT_DEVICE void report_debug(const DecodeParams& params, pagejit_shared::DebugCode code,
                                 int seq_idx, int position, int64_t value) {
  auto* header = static_cast<pagejit_shared::WorkspaceHeader*>(params.workspace);
  if (dev::atomic_cas(&header->debug_code, pagejit_shared::kDebugOk, code) !=
      pagejit_shared::kDebugOk) {
    return;
  }
  dev::store_global(&header->debug_seq_idx, seq_idx);
  dev::store_global(&header->debug_position, position);
  dev::store_global(&header->debug_value, static_cast<long long>(value));
}

// The scale that scores are multiplied with; the sign is q's. Never 0, since the score of a token
// that takes no part, -inf, must stay -inf: the least normal number makes all others equal as well.
PAGEJIT_DEVICE float positive_scale(const DecodeParams& params) {
  constexpr float kLeast = 0x1p-126f;
  const float scale = params.scale_log2 < 0.0f ? -params.scale_log2 : params.scale_log2;
  return scale < kLeast ? kLeast : scale;
}

struct DecodeWork {
  int seq_idx;
  int kv_head_idx;
  int split_idx;
  int seq_len;
  int num_active_splits;  // splits of this sequence that have tokens; of an empty one 0 or 1
  int token_begin;
  int token_end;  // this split's tokens are [token_begin, token_end)

  PAGEJIT_DEVICE bool has_tokens() const { return token_begin < token_end; }
};

// The sequence's length; a debug kernel reports a length that its block table cannot hold and takes
// 0 for it.
template <DecodeConfig C>
PAGEJIT_DEVICE int load_seq_len(const DecodeParams& params, int seq_idx) {
  const int seq_len = dev::load_global_nc(params.seq_lens + seq_idx);
  if constexpr (C.debug) {
    const int64_t capacity = static_cast<int64_t>(params.max_blocks_per_seq) * C.block_size;
    if (seq_len < 0 || seq_len > capacity) {
      if (dev::thread_idx() == 0) {
        report_debug(params, pagejit_shared::kDebugBadSeqLen, seq_idx, 0, seq_len);
      }
      return 0;
    }
  }
  return seq_len;
}

// Every CTA of a sequence computes the same split from the same length, so no plan has to exist
// before the launch.
template <DecodeConfig C>
PAGEJIT_DEVICE DecodeWork find_work(const DecodeParams& params) {
  constexpr int kTileTokens = DecodeTraits<C>::kTileTokens;
  DecodeWork work;
  work.split_idx = dev::block_idx_x();
  work.kv_head_idx = dev::block_idx_y();
  work.seq_idx = dev::block_idx_z();
  work.seq_len = load_seq_len<C>(params, work.seq_idx);
  work.num_active_splits = 1;
  work.token_begin = 0;
  work.token_end = work.seq_len;
  if (params.num_splits > 1) {
    // Unsigned: rounding up cannot overflow below 2^32.
    const uint32_t seq_len = static_cast<uint32_t>(work.seq_len < 0 ? 0 : work.seq_len);
    const uint32_t num_splits = static_cast<uint32_t>(params.num_splits);
    const uint32_t even = (seq_len + num_splits - 1) / num_splits;
    const uint32_t whole_tiles = (even + kTileTokens - 1) / kTileTokens * kTileTokens;
    const uint32_t least = static_cast<uint32_t>(params.min_split_tokens);
    const uint32_t split_tokens = whole_tiles < least ? least : whole_tiles;
    const uint32_t begin = split_tokens * static_cast<uint32_t>(work.split_idx);
    work.num_active_splits = static_cast<int>((seq_len + split_tokens - 1) / split_tokens);
    work.token_begin = static_cast<int>(begin < seq_len ? begin : seq_len);
    work.token_end = static_cast<int>(
        seq_len - work.token_begin < split_tokens ? seq_len : begin + split_tokens);
  } else if (work.seq_len < 0) {
    work.token_end = 0;
  }
  return work;
}
