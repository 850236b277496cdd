// Rounding f32 to the 8-bit float formats, as bits. Used by the host prelude. Built-in types only,
// no includes.
#pragma once

namespace pagejit_emulator {

// cvt.rn.satfinite: to nearest even, saturating at kMax, infinities too; NaN gives 0x7f. E4M3 has 3
// mantissa bits and 448, E5M2 2 and 57344. Works by exact scaling, since every step is a power of
// two.
template <int kMantissaBits, int kMax>
constexpr unsigned char f8_from_f32(float x) {
  constexpr int kBias = kMantissaBits == 3 ? 7 : 15;
  if (x != x) return 0x7f;
  const unsigned sign = (f32_bits(x) >> 24) & 0x80u;
  float magnitude = f32_from_bits(f32_bits(x) & 0x7fffffffu);
  if (magnitude > static_cast<float>(kMax)) magnitude = static_cast<float>(kMax);
  // The exponent field, at least 1, where the unit of subnormals is that of the least normal.
  int field = 1;
  float unit = 1.0f;
  for (int i = 0; i < kBias - 1 + kMantissaBits; ++i) unit *= 0.5f;
  while (magnitude >= unit * (2 << kMantissaBits)) {
    unit *= 2.0f;
    ++field;
  }
  const float units = magnitude / unit;  // exact, below 2^(mantissa bits + 1)
  unsigned whole = static_cast<unsigned>(units);
  const float rest = units - static_cast<float>(whole);
  if (rest > 0.5f || (rest == 0.5f && (whole & 1u) != 0)) ++whole;
  // `whole` holds the implicit bit where the result is normal; a carry moves into the exponent.
  const unsigned code = (static_cast<unsigned>(field - 1) << kMantissaBits) + whole;
  return static_cast<unsigned char>(sign | code);
}

// OFP8 e4m3: bias 7, no infinity, all ones is NaN.
constexpr float f32_from_e4m3(unsigned code) {
  const unsigned sign = (code & 0x80u) << 24;
  const unsigned exponent = (code >> 3) & 15u;
  const unsigned fraction = code & 7u;
  if ((code & 0x7fu) == 0x7fu) return f32_from_bits(0x7fc00000u);
  if (exponent != 0) return f32_from_bits(sign | ((exponent + 120u) << 23) | (fraction << 20));
  const float magnitude = static_cast<float>(fraction) * 0x1p-9f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace pagejit_emulator
