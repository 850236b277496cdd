// Rounding f32 to an 8-bit float in plain arithmetic, for GPUs without the instruction: to nearest
// even, saturating at the greatest finite value, infinities too; NaN becomes 0x7f.
#pragma once

// kMaxCode: the greatest finite one.
template <int kMantissaBits, int kBias, uint32_t kMaxCode>
PAGEJIT_DEVICE uint32_t round_to_float8(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = bits >> 24 & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fu;
  constexpr uint32_t kLeastNormal = static_cast<uint32_t>(127 + 1 - kBias) << 23;
  if (magnitude < kLeastNormal) {
    // Multiples of 2^(1 - bias - mantissa bits): added to 2^23 of these, the sum is rounded to them.
    constexpr uint32_t kUnits = static_cast<uint32_t>(127 + 24 - kBias - kMantissaBits) << 23;
    const float sum =
        __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, kUnits);
    return sign | (__builtin_bit_cast(uint32_t, sum) - kUnits);
  }
  constexpr int kDropped = 23 - kMantissaBits;
  const uint32_t rounded =
      magnitude + ((1u << (kDropped - 1)) - 1) + (magnitude >> kDropped & 1u);
  const uint32_t code =
      (rounded >> kDropped) - (static_cast<uint32_t>(127 - kBias) << kMantissaBits);
  return sign | (code < kMaxCode ? code : kMaxCode);
}

PAGEJIT_DEVICE uint32_t round_to_e4m3(float value) { return round_to_float8<3, 7, 0x7eu>(value); }
PAGEJIT_DEVICE uint32_t round_to_e5m2(float value) { return round_to_float8<2, 15, 0x7bu>(value); }
