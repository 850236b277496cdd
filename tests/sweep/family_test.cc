#include "tests/sweep/family_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tools/reference/narrow_float.h"

namespace pagejit {

uint32_t encode_element(DataType type, float value) {
  switch (type) {
    case DataType::kFloat32:
      return std::bit_cast<uint32_t>(value);
    case DataType::kFloat8E4m3:
    case DataType::kFloat8E5m2:
      return encode_float(type, value);
    case DataType::kInt8:
      if (std::isnan(value)) return 0;
      return static_cast<uint8_t>(
          static_cast<int>(std::nearbyint(std::clamp(value, -127.0f, 127.0f))));
    default:
      return encode_float(type, value);
  }
}

float decode_element(DataType type, uint32_t code) {
  switch (type) {
    case DataType::kFloat32:
      return std::bit_cast<float>(code);
    case DataType::kFloat8E4m3:
    case DataType::kFloat8E5m2:
      return decode_float(type, static_cast<uint8_t>(code));
    case DataType::kInt8:
      return static_cast<int8_t>(code);
    default:
      return decode_float(type, static_cast<uint16_t>(code));
  }
}

void put_element(DataType type, std::vector<uint8_t>& bytes, int64_t index, float value) {
  const uint32_t code = encode_element(type, value);
  const auto size = static_cast<size_t>(data_type_bytes(type));
  std::memcpy(&bytes.at(static_cast<size_t>(index) * size), &code, size);  // little endian
}

uint32_t get_code(DataType type, const std::vector<uint8_t>& bytes, int64_t index) {
  uint32_t code = 0;
  const auto size = static_cast<size_t>(data_type_bytes(type));
  std::memcpy(&code, &bytes.at(static_cast<size_t>(index) * size), size);
  return code;
}

float get_element(DataType type, const std::vector<uint8_t>& bytes, int64_t index) {
  return decode_element(type, get_code(type, bytes, index));
}

}  // namespace pagejit
