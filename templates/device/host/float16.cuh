// Conversions between f32 and the two 16-bit float formats, rounding to nearest even, as bits. Used
// by the host prelude and by the emulator's matrix products. Built-in types only, no includes.
#pragma once

namespace pagejit_emulator {

constexpr unsigned f32_bits(float x) { return __builtin_bit_cast(unsigned, x); }
constexpr float f32_from_bits(unsigned bits) { return __builtin_bit_cast(float, bits); }

// cvt.rn.bf16.f32: NaN becomes the canonical 0x7fff, as on the GPU.
constexpr unsigned short bf16_from_f32(float x) {
  const unsigned bits = f32_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f32_from_bf16(unsigned short h) {
  return f32_from_bits(static_cast<unsigned>(h) << 16);
}

// cvt.rn.f16.f32: overflow gives infinity, NaN the canonical 0x7fff, subnormals are kept.
constexpr unsigned short f16_from_f32(float x) {
  const unsigned bits = f32_bits(x);
  const unsigned sign = (bits >> 16) & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  // 65520 is half-way between the largest f16, 65504, and the next power of two: it and all above
  // round to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);
  unsigned significand = magnitude;
  unsigned dropped = 13;  // f32 has 13 fraction bits more than f16
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is a multiple of 2^-24: shift the explicit significand there. Below
    // 2^-25 all is dropped.
    const unsigned exponent = magnitude >> 23;
    if (exponent < 102) return static_cast<unsigned short>(sign);
    significand = (magnitude & 0x7fffffu) | 0x800000u;
    dropped = 126 - exponent;
  } else {
    significand = magnitude - (112u << 23);  // exponent bias 127 to 15
  }
  const unsigned kept = significand >> dropped;
  const unsigned rest = significand & ((1u << dropped) - 1u);
  const unsigned half = 1u << (dropped - 1u);
  const bool up = rest > half || (rest == half && (kept & 1u) != 0);
  return static_cast<unsigned short>(sign | (kept + (up ? 1u : 0u)));
}

// Rounded once: the f32 in between is cut off, with its last bit set where anything was lost.
constexpr unsigned short f16_from_f64(double x) {
  constexpr unsigned long long kLost = (1ull << 29) - 1;  // f64 has 29 fraction bits more than f32
  const unsigned long long bits = __builtin_bit_cast(unsigned long long, x);
  const unsigned long long odd = (bits & kLost) != 0 ? kLost + 1 : 0;
  return f16_from_f32(static_cast<float>(__builtin_bit_cast(double, (bits & ~kLost) | odd)));
}

constexpr float f32_from_f16(unsigned short h) {
  const unsigned sign = static_cast<unsigned>(h & 0x8000u) << 16;
  const unsigned exponent = (h >> 10) & 31u;
  const unsigned fraction = h & 0x3ffu;
  if (exponent == 31) return f32_from_bits(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return f32_from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace pagejit_emulator
