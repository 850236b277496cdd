#include "tools/reference/element_buffer.h"

#include <cstring>

#include "tools/reference/narrow_float.h"

namespace pagejit {

ElementBuffer::ElementBuffer(DataType type, int64_t size, uint32_t fill)
    : type_(type), bytes_(static_cast<size_t>(size * data_type_bits(type) / 8)) {
  for (int64_t i = 0; i < size; ++i) set_code(i, fill);
}

uint32_t ElementBuffer::nan_code(DataType type) {
  return 0xffffffffu >> (32 - data_type_bits(type));
}

uint32_t ElementBuffer::sentinel_code(DataType type) {
  if (type == DataType::kInt4) return 0x5u;  // no NaN
  switch (data_type_bytes(type)) {
    case 1:
      return 0x7fu;  // e4m3 has no third NaN
    case 2:
      return 0xffa5u;
    default:
      return 0xffffa5a5u;
  }
}

float ElementBuffer::at(int64_t index) const { return load_element(type_, bytes_.data(), index); }

void ElementBuffer::set(int64_t index, float value) { set_code(index, encode_float(type_, value)); }

// Bytes from the lowest on, as in the memory of a GPU and of the hosts that have one.
uint32_t ElementBuffer::code(int64_t index) const {
  uint32_t code = 0;
  std::memcpy(&code, address(index), static_cast<size_t>(data_type_bytes(type_)));
  if (type_ == DataType::kInt4) return code >> (index % 2 * 4) & 0xfu;
  return code;
}

void ElementBuffer::set_code(int64_t index, uint32_t code) {
  if (type_ == DataType::kInt4) {
    const auto shift = static_cast<uint32_t>(index % 2 * 4);
    uint8_t& byte = *address(index);
    byte = static_cast<uint8_t>((byte & ~(0xfu << shift)) | (code & 0xfu) << shift);
    return;
  }
  std::memcpy(address(index), &code, static_cast<size_t>(data_type_bytes(type_)));
}

}  // namespace pagejit
