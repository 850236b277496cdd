#include "tests/sweep/family_test.h"

#include <bit>
#include <cstring>

namespace pagejit {

uint32_t encode_element(DataType type, float value) {
  return type == DataType::kFloat32 ? std::bit_cast<uint32_t>(value) : encode_half(type, value);
}

float decode_element(DataType type, uint32_t code) {
  return type == DataType::kFloat32 ? std::bit_cast<float>(code)
                                    : decode_half(type, static_cast<uint16_t>(code));
}

void put_element(DataType type, std::vector<uint8_t>& bytes, int64_t index, float value) {
  const uint32_t code = encode_element(type, value);
  const auto size = static_cast<size_t>(data_type_bytes(type));
  std::memcpy(&bytes.at(static_cast<size_t>(index) * size), &code, size);  // little endian
}

float get_element(DataType type, const std::vector<uint8_t>& bytes, int64_t index) {
  uint32_t code = 0;
  const auto size = static_cast<size_t>(data_type_bytes(type));
  std::memcpy(&code, &bytes.at(static_cast<size_t>(index) * size), size);
  return decode_element(type, code);
}

}  // namespace pagejit
