// What no instruction of sm_75 does, on bits.
#pragma once

namespace dev {

// To nearest even; NaN becomes 0x7fff, as by cvt.
PAGEJIT_DEVICE uint32_t round_to_bf16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

PAGEJIT_DEVICE uint32_t pack_bf16x2(float low, float high) {
  return round_to_bf16(low) | round_to_bf16(high) << 16;
}

// The bytes of word `word` that are among the first valid_bytes.
PAGEJIT_DEVICE uint32_t mask_of_word(int word, int valid_bytes) {
  const int bytes = valid_bytes - word * 4;
  return bytes >= 4 ? 0xffffffffu : bytes <= 0 ? 0u : (1u << (bytes * 8)) - 1u;
}

}  // namespace dev
