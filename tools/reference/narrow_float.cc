#include "tools/reference/narrow_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace pagejit {
namespace {

// A format with a sign, an exponent and a mantissa. Codes without their sign.
struct Format {
  int bits;
  int mantissa_bits;
  int min_exponent;   // of the normal numbers
  uint32_t greatest;  // finite
  uint32_t overflow;  // what lies beyond becomes
  uint32_t infinity;  // codes above are NaN
  uint32_t nan;       // that NaN becomes
};

// bf16 is the upper half of a float32, so its exponents are the same.
constexpr Format kF16 = {16, 10, -14, 0x7bff, 0x7c00, 0x7c00, 0x7fff};
constexpr Format kBF16 = {16, 7, -126, 0x7f7f, 0x7f80, 0x7f80, 0x7fff};
// OFP8. e4m3 has no infinity: only the code of all ones is NaN, and 0x7e is finite.
constexpr Format kE4m3 = {8, 3, -6, 0x7e, 0x7e, 0x7f, 0x7f};
constexpr Format kE5m2 = {8, 2, -14, 0x7b, 0x7b, 0x7c, 0x7f};

constexpr uint32_t kFloatInfinity = 0x7f800000u;
constexpr float kGreatestInt8 = 127.0f;  // -128 is left out, so that the range is even
// -8 is left to those who write codes; by a scale of the greatest magnitude over 7 nothing gets
// there.
constexpr float kGreatestInt4 = 7.0f;

const Format& format_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return kF16;
    case DataType::kFloat8E4m3:
      return kE4m3;
    case DataType::kFloat8E5m2:
      return kE5m2;
    default:
      return kBF16;
  }
}

float widen(DataType type, uint32_t code) {
  const Format& format = format_of(type);
  const uint32_t sign = (code >> (format.bits - 1) & 1u) << 31;
  const uint32_t magnitude = code & ((1u << (format.bits - 1)) - 1);
  const uint32_t exponent = magnitude >> format.mantissa_bits;
  const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  const int to_float = 23 - format.mantissa_bits;
  if (magnitude == format.nan || magnitude > format.infinity) {
    return std::bit_cast<float>(sign | kFloatInfinity | (mantissa << to_float));
  }
  if (magnitude == format.infinity) return std::bit_cast<float>(sign | kFloatInfinity);
  if (exponent == 0) {  // zero or subnormal: exact in float32
    const float value =
        std::ldexp(static_cast<float>(mantissa), format.min_exponent - format.mantissa_bits);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  // Exponent 1 is min_exponent, and 127 is the bias of float32.
  const uint32_t wide = exponent + static_cast<uint32_t>(126 + format.min_exponent);
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << to_float));
}

uint32_t narrow(DataType type, float value) {
  const Format& format = format_of(type);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 31 << (format.bits - 1);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > kFloatInfinity) return format.nan;
  // The subnormals of float32, too, have the exponent -126 and lack the implicit bit.
  const int exponent = magnitude >> 23 != 0 ? static_cast<int>(magnitude >> 23) - 127 : -126;
  const uint32_t significand = (magnitude & 0x7fffffu) | (magnitude >> 23 != 0 ? 0x800000u : 0u);
  // Mantissa bits that the format lacks, and one more for each step below its normal numbers.
  const int below = exponent < format.min_exponent ? format.min_exponent - exponent : 0;
  const int dropped = 23 - format.mantissa_bits + below;
  if (dropped > 24) return sign;  // below half of the least subnormal
  uint32_t kept = significand >> dropped;
  const uint32_t rest = significand & ((1u << dropped) - 1);
  const uint32_t half = 1u << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1u))) ++kept;
  // `kept` holds the implicit bit where the result is normal, so adding it carries into the
  // exponent.
  const int above = exponent < format.min_exponent ? 0 : exponent - format.min_exponent;
  const uint32_t code = (static_cast<uint32_t>(above) << format.mantissa_bits) + kept;
  return sign | (code > format.greatest ? format.overflow : code);
}

}  // namespace

float decode_float(DataType type, uint32_t code) {
  if (type == DataType::kInt8) return static_cast<float>(static_cast<int8_t>(code));
  if (type == DataType::kInt4) return static_cast<float>(static_cast<int>(code ^ 8u) - 8);
  return type == DataType::kFloat32 ? std::bit_cast<float>(code) : widen(type, code);
}

uint32_t encode_float(DataType type, float value) {
  if (type == DataType::kInt8) {
    if (std::isnan(value)) return 0;
    const float whole = std::nearbyint(std::clamp(value, -kGreatestInt8, kGreatestInt8));
    return static_cast<uint8_t>(static_cast<int8_t>(whole));
  }
  if (type == DataType::kInt4) {
    if (std::isnan(value)) return 0;
    return static_cast<uint32_t>(static_cast<int>(
               std::nearbyint(std::clamp(value, -kGreatestInt4 - 1, kGreatestInt4)))) &
           0xfu;
  }
  return type == DataType::kFloat32 ? std::bit_cast<uint32_t>(value) : narrow(type, value);
}

float round_to_type(DataType type, float value) {
  return decode_float(type, encode_float(type, value));
}

double unit_roundoff(DataType type) {
  const int mantissa_bits = type == DataType::kFloat32 ? 23 : format_of(type).mantissa_bits;
  return std::ldexp(1.0, -mantissa_bits - 1);
}

float greatest_value(DataType type) {
  if (type == DataType::kInt8) return kGreatestInt8;
  if (type == DataType::kInt4) return kGreatestInt4;
  // The code below that of infinity.
  return type == DataType::kFloat32 ? std::bit_cast<float>(kFloatInfinity - 1)
                                    : widen(type, format_of(type).greatest);
}

float load_element(DataType type, const void* start, int64_t index) {
  if (type == DataType::kInt4) {
    const unsigned byte = static_cast<const unsigned char*>(start)[index / 2];
    return decode_float(type, byte >> (index % 2 * 4) & 0xfu);
  }
  const auto* bytes = static_cast<const unsigned char*>(start) + index * data_type_bytes(type);
  switch (data_type_bytes(type)) {
    case 1:
      return decode_float(type, *bytes);
    case 2: {
      uint16_t code = 0;
      std::memcpy(&code, bytes, sizeof code);
      return decode_float(type, code);
    }
    default: {
      float value = 0;
      std::memcpy(&value, bytes, sizeof value);
      return value;
    }
  }
}

}  // namespace pagejit
