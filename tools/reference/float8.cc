#include "tools/reference/float8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace pagejit {
namespace {

// By the formats' definition (OCP 8-bit floating point specification 1.0).
float value_of(DataType type, int code) {
  const bool e4m3 = type == DataType::kFloat8E4m3;
  const int mantissa_bits = e4m3 ? 3 : 2;
  const int bias = e4m3 ? 7 : 15;
  const int exponent = (code & 0x7f) >> mantissa_bits;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const float sign = (code & 0x80) != 0 ? -1.0f : 1.0f;
  if (e4m3 && (code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (!e4m3 && exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const float fraction = std::ldexp(static_cast<float>(mantissa), -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1.0f + fraction, exponent - bias));
}

// The values of the codes from 0 to the greatest finite one, which rise.
std::array<float, 128> magnitudes(DataType type) {
  std::array<float, 128> values;
  for (int code = 0; code < 128; ++code) values[static_cast<size_t>(code)] = value_of(type, code);
  return values;
}

}  // namespace

float decode_float8(DataType type, uint8_t code) { return value_of(type, code); }

uint8_t encode_float8(DataType type, float value) {
  static const std::array<float, 128> kE4M3 = magnitudes(DataType::kFloat8E4m3);
  static const std::array<float, 128> kE5M2 = magnitudes(DataType::kFloat8E5m2);
  if (std::isnan(value)) return 0x7f;
  const bool e4m3 = type == DataType::kFloat8E4m3;
  const std::array<float, 128>& values = e4m3 ? kE4M3 : kE5M2;
  const int greatest = e4m3 ? 0x7e : 0x7b;
  const double magnitude = std::abs(static_cast<double>(value));
  const auto end = values.begin() + greatest + 1;
  const auto above = std::lower_bound(values.begin(), end, magnitude);
  int code = greatest;
  if (above != end) {
    code = static_cast<int>(above - values.begin());
    if (code > 0) {
      const double up = static_cast<double>(*above) - magnitude;
      const double down = magnitude - static_cast<double>(*(above - 1));
      if (down < up || (down == up && code % 2 == 1)) --code;
    }
  }
  return static_cast<uint8_t>(code | (std::signbit(value) ? 0x80 : 0));
}

}  // namespace pagejit
