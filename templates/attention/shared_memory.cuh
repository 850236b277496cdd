// Shared memory of the attention kernel as one struct, and the constants that follow from its
// configuration.
#pragma once

using pagejit_shared::AttentionParams;
using pagejit_shared::PartialStats;

#if PAGEJIT_KV_8BIT
using KvElement = uint8_t;  // a code of e4m3, e5m2 or int8
#elif PAGEJIT_KV_F32
using KvElement = float;
#elif PAGEJIT_KV_INT4
using KvElement = uint8_t;  // two codes, the first in the low half
#else
using KvElement = uint16_t;  // the 16 bits of an f16 or a bf16
#endif

struct Traits {
  static constexpr int kWarps = pagejit_shared::num_warps(kConfig);
  static constexpr int kThreads = kWarps * 32;
  // Tokens of one stage of the whole CTA.
  static constexpr int kTileTokens = kConfig.token_groups * kConfig.group_tokens;
  // mma tiles of 16 tokens per group and stage, and of 16 elements along the head.
  static constexpr int kTokenTiles = kConfig.group_tokens / 16;
  static constexpr int kDepthTiles = kConfig.head_size_padded / 16;
  static constexpr int kValueTiles = kConfig.head_size_v_padded / 16;
#if PAGEJIT_LATENT
  static constexpr int kWarpValueTiles = pagejit_shared::warp_value_tiles(kConfig);
  // From the rows of one token's probabilities to the next token's.
  static constexpr int kProbabilityPitch =
      pagejit_shared::shared_row_pitch(pagejit_shared::tile_rows(kConfig), 2);
#endif
  // Rows of one warp and of the CTA, whether they exist or not.
  static constexpr int kWarpRows = kConfig.row_tiles * 8;
  static constexpr int kTileRows = pagejit_shared::tile_rows(kConfig);
  static constexpr int kPartialGroups = pagejit_shared::partial_groups(kConfig);
  static constexpr int kMergeRows = pagejit_shared::merge_rows(kConfig);
  // Elements from one row to the next in shared memory, of K, V and q.
  static constexpr int kKeyPitch = pagejit_shared::shared_row_pitch(
      pagejit_shared::padded_key_row_units(kConfig), sizeof(KvElement));
#if PAGEJIT_KV_VLLM
  // From the tokens of one element to those of the next.
  static constexpr int kValuePitch =
      pagejit_shared::shared_row_pitch(kConfig.group_tokens, sizeof(KvElement));
#elif PAGEJIT_KV_INT4
  static constexpr int kValuePitch =
      pagejit_shared::shared_row_pitch(kConfig.head_size_v_padded / 2, 1);
#else
  static constexpr int kValuePitch =
      pagejit_shared::shared_row_pitch(kConfig.head_size_v_padded, sizeof(KvElement));
#endif
  static constexpr int kQueryPitch = pagejit_shared::shared_row_pitch(kConfig.head_size_padded, 2);
  static constexpr int kMergePitch = pagejit_shared::merge_row_pitch(kConfig.head_size_v_padded);
  static constexpr int kSplitsAtOnce = pagejit_shared::splits_at_once(kConfig);
};

struct alignas(16) KvStage {
  KvElement k[kConfig.group_tokens][Traits::kKeyPitch];
#if PAGEJIT_LATENT
  // V is the first elements of each row.
#elif PAGEJIT_KV_VLLM
  KvElement v[kConfig.head_size_v_padded][Traits::kValuePitch];
#else
  KvElement v[kConfig.group_tokens][Traits::kValuePitch];
#endif
#if PAGEJIT_KV_LISTS
  int is_listed[kConfig.group_tokens];  // 0: the list has no token there
#endif
#if PAGEJIT_TOKEN_SCALES
  float k_scale[kConfig.group_tokens];
  float v_scale[kConfig.group_tokens];
#endif
};

#if PAGEJIT_LATENT
// What warps tell each other about a tile: see latent_softmax.cuh.
struct alignas(16) LatentExchange {
  uint16_t p[Traits::kTileTokens][Traits::kProbabilityPitch];
  float by_group[kConfig.token_groups][Traits::kTileRows];  // greatest scores, at the end sums
  float factor[Traits::kTileRows];  // of what was added up before the tile
  int has_factors[kConfig.row_warps];  // not 0: one of the rows of this warp of a group has another than 1
};

#endif
// Four consecutive elements of one head in f32.
struct alignas(16) Quad {
  float v[4];
};

// What the token groups have of one merge unit.
struct alignas(16) GroupPartials {
  float acc[Traits::kPartialGroups][Traits::kMergeRows][Traits::kMergePitch];
  PartialStats stats[Traits::kPartialGroups][Traits::kMergeRows];
};

// What each thread is about to add of some splits.
struct alignas(16) SplitBatch {
  Quad acc[Traits::kSplitsAtOnce][Traits::kThreads];
  PartialStats stats[Traits::kSplitsAtOnce][Traits::kThreads];
};

struct alignas(16) MergeBuffer {
  int is_last_split;  // this CTA finished a merge unit's last split
  union {
    alignas(16) GroupPartials groups;
    SplitBatch splits;  // after all of them
  };
};

union RingOrMerge {
  KvStage ring[kConfig.token_groups][kConfig.num_stages];  // while tokens are streamed
  MergeBuffer merge;                                       // afterwards
};

#if PAGEJIT_BATCH_INVARIANT
// The sum of the splits that a CTA does in turn. Accumulators are read and written by one thread
// each; statistics are read by all threads of a row, so those of the next split lie beside them.
struct alignas(16) SplitTotals {
  float acc[Traits::kTileRows][Traits::kMergePitch];
  PartialStats stats[2][Traits::kTileRows];
};

#endif
struct AttentionShared {
  RingOrMerge u;
#if PAGEJIT_BATCH_INVARIANT
  SplitTotals totals;
#endif
#if PAGEJIT_LATENT
  LatentExchange exchange;
#endif
#if !PAGEJIT_Q_IN_REGISTERS
#if PAGEJIT_KV_F32
  alignas(16) uint16_t q[pagejit_shared::kF32Terms][Traits::kTileRows][Traits::kQueryPitch];
#else
  alignas(16) uint16_t q[Traits::kTileRows][Traits::kQueryPitch];
#endif
#if PAGEJIT_SCALE_Q_ROWS
  alignas(16) float q_row_scale[Traits::kTileRows];
#endif
#endif
};
