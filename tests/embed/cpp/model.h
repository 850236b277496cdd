// The sizes of the attention layer that this program serves: those of a small model with grouped
// query heads.
#pragma once

#include <cstddef>
#include <cstdint>

inline constexpr int kNumHeads = 8;    // of q
inline constexpr int kNumKvHeads = 2;  // of K and V
inline constexpr int kHeadSize = 64;
inline constexpr int kBlockSize = 16;    // tokens per block of the paged cache
inline constexpr float kScale = 0.125f;  // 1 / sqrt(kHeadSize)

using Bf16 = uint16_t;  // the bits of a bfloat16

inline constexpr int kQElements = kNumHeads * kHeadSize;     // of a token's query, and its result
inline constexpr int kKvElements = kNumKvHeads * kHeadSize;  // of a token's K, and of its V
inline constexpr size_t kBlockBytes = sizeof(Bf16) * kBlockSize * kKvElements;  // of K, and of V
