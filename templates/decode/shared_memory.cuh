// Shared memory of the decode kernel as one struct, and the constants that follow from its
// configuration.
#pragma once

using pagejit_shared::DecodeConfig;
using pagejit_shared::DecodeParams;

template <DecodeConfig C>
struct DecodeTraits {
  static constexpr int kWarps = C.token_groups * C.head_warps;
  static constexpr int kThreads = kWarps * 32;
  // Tokens of one stage of the whole CTA.
  static constexpr int kTileTokens = C.token_groups * C.group_tokens;
  // mma tiles of 16 tokens per group and stage, and of 16 elements along the head.
  static constexpr int kTokenTiles = C.group_tokens / 16;
  static constexpr int kDepthTiles = C.head_size_padded / 16;
  // Query heads of one warp and of the CTA, padded to tiles of 8.
  static constexpr int kWarpHeads = C.head_tiles * 8;
  static constexpr int kPaddedHeads = pagejit_shared::padded_heads(C);
  static constexpr int kMergeHeads = pagejit_shared::merge_heads(C);
  static constexpr int kPitch = pagejit_shared::shared_row_pitch(C.head_size_padded);
  static constexpr int kMergePitch = pagejit_shared::merge_row_pitch(C.head_size_padded);
  // 16-byte chunks of a row in global memory, and the rows that one warp copies at a time.
  static constexpr int kRowChunks = C.head_size / 8;
  static constexpr int kRowsPerPass = 32 / kRowChunks;
};

// 16-byte rows: an element is the 16 bits of an f16 or a bf16.
template <DecodeConfig C>
struct alignas(16) KvStage {
  uint16_t k[C.group_tokens][DecodeTraits<C>::kPitch];
  uint16_t v[C.group_tokens][DecodeTraits<C>::kPitch];
};

template <DecodeConfig C>
struct alignas(16) MergeBuffer {
  float acc[C.token_groups][DecodeTraits<C>::kMergeHeads][DecodeTraits<C>::kMergePitch];
  pagejit_shared::PartialStats stats[C.token_groups][DecodeTraits<C>::kMergeHeads];
  int is_last_split;  // this CTA finished a merge unit's last split
};

template <DecodeConfig C>
union RingOrMerge {
  KvStage<C> ring[C.token_groups][C.num_stages];  // while tokens are streamed
  MergeBuffer<C> merge;                           // afterwards
};

template <DecodeConfig C, bool kQueryInRegisters = C.q_in_registers>
struct DecodeShared {
  RingOrMerge<C> u;
};
template <DecodeConfig C>
struct DecodeShared<C, false> {
  RingOrMerge<C> u;
  alignas(16) uint16_t q[DecodeTraits<C>::kPaddedHeads][DecodeTraits<C>::kPitch];
};
