// The 8-bit element types: rounding f32 to them, and widening. Rounding is to nearest even and
// saturates at the greatest finite value, infinities too; NaN becomes 0x7f, the canonical NaN of
// both formats.
#pragma once

#include "elements/round_float8.cuh"

// Two codes, the first in the low byte.
template <Element E, bool kHasConvert>
PAGEJIT_DEVICE uint32_t pack_float8x2(float low, float high) {
  if constexpr (E == Element::kFloat8E4m3) {
    if constexpr (kHasConvert) return dev::pack_e4m3x2(low, high);
    return round_to_e4m3(low) | round_to_e4m3(high) << 8;
  } else {
    if constexpr (kHasConvert) return dev::pack_e5m2x2(low, high);
    return round_to_e5m2(low) | round_to_e5m2(high) << 8;
  }
}

// The nearest whole number in [-127, 127], ties to even, as a byte. NaN becomes 0.
PAGEJIT_DEVICE uint32_t round_to_int8(float value) {
  if (!(value == value)) return 0;
  const float clamped = value < -127.0f ? -127.0f : value > 127.0f ? 127.0f : value;
  // 1.5 * 2^23: the sum's last bit is worth 1.
  return __builtin_bit_cast(uint32_t, clamped + 12582912.0f) & 0xffu;
}

// Rounds to an 8-bit type.
template <Element E, int kCount, bool kHasConvert>
PAGEJIT_DEVICE ElementBits<E, kCount> narrow_to_8(const float (&values)[kCount]) {
  ElementBits<E, kCount> bits = {};
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    const float high = i + 1 < kCount ? values[i + 1 < kCount ? i + 1 : i] : 0.0f;
    uint32_t pair;
    if constexpr (E == Element::kInt8) {
      pair = round_to_int8(values[i]) | round_to_int8(high) << 8;
    } else {
      pair = pack_float8x2<E, kHasConvert>(values[i], high);
    }
    bits.words[i / 4] |= pair << (i % 4 * 8);
  }
  return bits;
}

// One value, exactly. E4M3: as an f16 its exponent is 8 too small.
template <Element E>
PAGEJIT_DEVICE float widen_8(uint32_t code) {
  if constexpr (E == Element::kInt8) {
    return static_cast<float>(static_cast<int>(code << 24) >> 24);
  } else if constexpr (E == Element::kFloat8E5m2) {
    return dev::unpack_f16(static_cast<uint16_t>(code << 8));
  } else {
    if ((code & 0x7fu) == 0x7fu) return __builtin_bit_cast(float, 0x7fffffffu);
    const uint32_t half = (code & 0x80u) << 8 | (code & 0x7fu) << 7;
    return dev::unpack_f16(static_cast<uint16_t>(half)) * 256.0f;
  }
}
