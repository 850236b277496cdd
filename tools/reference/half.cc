#include "tools/reference/half.h"

#include <bit>
#include <cmath>

namespace pagejit {
namespace {

constexpr uint16_t kCanonicalNan = 0x7fff;

}  // namespace

float float_from_f16(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000u) << 16;
  const uint32_t exponent = (code >> 10) & 0x1fu;
  const uint32_t mantissa = code & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in float32
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  // The exponent's bias is 15 in f16 and 127 in float32.
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float float_from_bf16(uint16_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
}

uint16_t f16_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kCanonicalNan;
  // 65520 lies halfway between the greatest f16, 65504, and 65536: it and all above become
  // infinity.
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) return sign | 0x7c00u;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  // Number of float32 mantissa bits that f16 drops: 13, and one more for each step below 2^-14.
  const int dropped = exponent >= -14 ? 13 : 13 + (-14 - exponent);
  if (dropped > 24) return sign;  // below half of the least subnormal
  const uint32_t significand = (magnitude & 0x7fffffu) | (exponent > -127 ? 0x800000u : 0u);
  uint32_t kept = significand >> dropped;
  const uint32_t rest = significand & ((1u << dropped) - 1);
  const uint32_t half = 1u << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1u))) ++kept;
  // `kept` holds the implicit bit where the result is normal, so adding it carries into the
  // exponent.
  const uint32_t base = exponent >= -14 ? static_cast<uint32_t>(exponent + 14) << 10 : 0u;
  return static_cast<uint16_t>(sign | (base + kept));
}

uint16_t bf16_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return kCanonicalNan;
  // Adding half of the dropped part, less one where the kept part is even, rounds to nearest even.
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float decode_half(DataType type, uint16_t code) {
  return type == DataType::kFloat16 ? float_from_f16(code) : float_from_bf16(code);
}

uint16_t encode_half(DataType type, float value) {
  return type == DataType::kFloat16 ? f16_from_float(value) : bf16_from_float(value);
}

float round_to_half(DataType type, float value) {
  return decode_half(type, encode_half(type, value));
}

double unit_roundoff(DataType type) { return type == DataType::kFloat16 ? 0x1p-11 : 0x1p-8; }

}  // namespace pagejit
