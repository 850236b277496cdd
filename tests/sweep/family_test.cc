#include "tests/sweep/family_test.h"

#include <algorithm>
#include <cstring>

#include "tools/reference/narrow_float.h"

namespace pagejit {

void put_element(DataType type, std::vector<uint8_t>& bytes, int64_t index, float value) {
  const uint32_t code = encode_float(type, value);
  if (type == DataType::kInt4) {
    uint8_t& byte = bytes.at(static_cast<size_t>(index / 2));
    const auto shift = static_cast<uint32_t>(index % 2 * 4);
    byte = static_cast<uint8_t>((byte & ~(0xfu << shift)) | code << shift);
    return;
  }
  const auto size = static_cast<size_t>(data_type_bytes(type));
  std::memcpy(&bytes.at(static_cast<size_t>(index) * size), &code, size);  // little endian
}

uint32_t get_code(DataType type, const std::vector<uint8_t>& bytes, int64_t index) {
  if (type == DataType::kInt4) {
    return static_cast<uint32_t>(bytes.at(static_cast<size_t>(index / 2)) >> (index % 2 * 4) & 0xf);
  }
  uint32_t code = 0;
  const auto size = static_cast<size_t>(data_type_bytes(type));
  std::memcpy(&code, &bytes.at(static_cast<size_t>(index) * size), size);
  return code;
}

std::string compare_bytes(const char* what, const std::vector<uint8_t>& got,
                          const std::vector<uint8_t>& want) {
  const auto [a, b] = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  if (a == got.end() && b == want.end()) return "";
  return std::string(what) + ", byte " + std::to_string(a - got.begin()) + ": " +
         std::to_string(*a) + " instead of " + std::to_string(*b);
}

float get_element(DataType type, const std::vector<uint8_t>& bytes, int64_t index) {
  return decode_float(type, get_code(type, bytes, index));
}

}  // namespace pagejit
