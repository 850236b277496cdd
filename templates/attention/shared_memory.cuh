// Shared memory of the attention kernel as one struct, and the constants that follow from its
// configuration.
#pragma once

using pagejit_shared::AttentionConfig;
using pagejit_shared::AttentionParams;

template <AttentionConfig C>
struct AttentionTraits {
  static constexpr int kWarps = C.token_groups * C.row_warps;
  static constexpr int kThreads = kWarps * 32;
  // Tokens of one stage of the whole CTA.
  static constexpr int kTileTokens = C.token_groups * C.group_tokens;
  // mma tiles of 16 tokens per group and stage, and of 16 elements along the head.
  static constexpr int kTokenTiles = C.group_tokens / 16;
  static constexpr int kDepthTiles = C.head_size_padded / 16;
  // Rows of one warp and of the CTA, whether they exist or not.
  static constexpr int kWarpRows = C.row_tiles * 8;
  static constexpr int kTileRows = pagejit_shared::tile_rows(C);
  static constexpr int kMergeRows = pagejit_shared::merge_rows(C);
  static constexpr int kPitch = pagejit_shared::shared_row_pitch(C.head_size_padded);
  static constexpr int kMergePitch = pagejit_shared::merge_row_pitch(C.head_size_padded);
  // 16-byte chunks of a row in global memory, and the rows that one warp copies at a time.
  static constexpr int kRowChunks = C.head_size / 8;
  static constexpr int kRowsPerPass = 32 / kRowChunks;
};

// 16-byte rows: an element is the 16 bits of an f16 or a bf16.
template <AttentionConfig C>
struct alignas(16) KvStage {
  uint16_t k[C.group_tokens][AttentionTraits<C>::kPitch];
  uint16_t v[C.group_tokens][AttentionTraits<C>::kPitch];
};

template <AttentionConfig C>
struct alignas(16) MergeBuffer {
  float acc[C.token_groups][AttentionTraits<C>::kMergeRows][AttentionTraits<C>::kMergePitch];
  pagejit_shared::PartialStats stats[C.token_groups][AttentionTraits<C>::kMergeRows];
  int is_last_split;  // this CTA finished a merge unit's last split
};

template <AttentionConfig C>
union RingOrMerge {
  KvStage<C> ring[C.token_groups][C.num_stages];  // while tokens are streamed
  MergeBuffer<C> merge;                           // afterwards
};

template <AttentionConfig C, bool kQueryInRegisters = C.q_in_registers>
struct AttentionShared {
  RingOrMerge<C> u;
};
template <AttentionConfig C>
struct AttentionShared<C, false> {
  RingOrMerge<C> u;
  alignas(16) uint16_t q[AttentionTraits<C>::kTileRows][AttentionTraits<C>::kPitch];
};
