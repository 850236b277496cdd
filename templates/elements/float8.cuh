// The element types of 8 and 4 bits: rounding f32 to them, and widening. Rounding is to nearest even
// and saturates at the greatest finite value, infinities too; NaN becomes 0x7f, the canonical NaN of
// both floating-point formats, or 0.
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

// The nearest whole number in [-kGreatest, kGreatest], ties to even, as the lowest bits of a two's
// complement. NaN becomes 0. kGreatest: 2^n - 1.
template <int kGreatest>
PAGEJIT_DEVICE uint32_t round_to_integer(float value) {
  if (!(value == value)) return 0;
  constexpr float kMost = kGreatest;
  const float clamped = value < -kMost ? -kMost : value > kMost ? kMost : value;
  // 1.5 * 2^23: the sum's last bit is worth 1.
  return __builtin_bit_cast(uint32_t, clamped + 12582912.0f) & (2u * kGreatest + 1u);
}

// Rounds to a type of 8 or 4 bits.
template <Element E, int kCount, bool kHasConvert>
PAGEJIT_DEVICE ElementBits<E, kCount> narrow_to_codes(const float (&values)[kCount]) {
  ElementBits<E, kCount> bits = {};
  if constexpr (E == Element::kInt4) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      bits.words[i / 8] |= round_to_integer<7>(values[i]) << (i % 8 * 4);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float high = i + 1 < kCount ? values[i + 1 < kCount ? i + 1 : i] : 0.0f;
      uint32_t pair;
      if constexpr (E == Element::kInt8) {
        pair = round_to_integer<127>(values[i]) | round_to_integer<127>(high) << 8;
      } else {
        pair = pack_float8x2<E, kHasConvert>(values[i], high);
      }
      bits.words[i / 4] |= pair << (i % 4 * 8);
    }
  }
  return bits;
}

// Values of a wider type divided by `scale`, as codes.
template <Element From, Element To, int kCount, bool kHasConvert>
PAGEJIT_DEVICE ElementBits<To, kCount> divide_to_codes(const ElementBits<From, kCount>& bits,
                                                       float scale) {
  float values[kCount];
  widen<From, kCount>(bits, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] /= scale;
  return narrow_to_codes<To, kCount, kHasConvert>(values);
}

// Code i of a vector, without what lies beside it.
template <Element E, int kBytes>
PAGEJIT_DEVICE uint32_t code_of(const Bits<kBytes>& bits, int i) {
  if constexpr (E == Element::kInt4) return bits.words[i / 8] >> (i % 8 * 4) & 0xfu;
  return bits.words[i / 4] >> (i % 4 * 8) & 0xffu;
}

// One value, exactly. E4M3: as an f16 its exponent is 8 too small.
template <Element E>
PAGEJIT_DEVICE float widen_code(uint32_t code) {
  if constexpr (E == Element::kInt4) {
    return static_cast<float>(static_cast<int>(code << 28) >> 28);
  } else if constexpr (E == Element::kInt8) {
    return static_cast<float>(static_cast<int>(code << 24) >> 24);
  } else if constexpr (E == Element::kFloat8E5m2) {
    return dev::unpack_f16(static_cast<uint16_t>(code << 8));
  } else {
    if ((code & 0x7fu) == 0x7fu) return __builtin_bit_cast(float, 0x7fffffffu);
    const uint32_t half = (code & 0x80u) << 8 | (code & 0x7fu) << 7;
    return dev::unpack_f16(static_cast<uint16_t>(half)) * 256.0f;
  }
}

// Codes times `scale`, rounded to a wider type.
template <Element From, Element To, int kCount>
PAGEJIT_DEVICE ElementBits<To, kCount> multiply_codes(const ElementBits<From, kCount>& bits,
                                                      float scale) {
  float values[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = widen_code<From>(code_of<From>(bits, i)) * scale;
  return narrow<To, kCount>(values);
}
