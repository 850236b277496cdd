// ElementBuffer: an array of elements of one data type on the host, as it lies in device memory.
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pagejit/spec.h"

namespace pagejit {

class ElementBuffer {
 public:
  ElementBuffer() = default;
  // `size` elements, each of the code `fill`; of int4 an even number.
  ElementBuffer(DataType type, int64_t size, uint32_t fill);

  // Two different NaN of any type: the code of all ones, and another.
  static uint32_t nan_code(DataType type);
  static uint32_t sentinel_code(DataType type);

  DataType type() const { return type_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()) * 8 / data_type_bits(type_); }
  size_t size_bytes() const { return bytes_.size(); }

  float at(int64_t index) const;
  // Rounded to the type; what lies beyond the range of a type of 8 bits saturates.
  void set(int64_t index, float value);
  uint32_t code(int64_t index) const;
  void set_code(int64_t index, uint32_t code);

  // The address of element `index`, of int4 of its byte; that of element 0 is aligned to 16 bytes.
  const uint8_t* address(int64_t index = 0) const { return bytes_.data() + offset_bytes(index); }
  uint8_t* address(int64_t index = 0) { return bytes_.data() + offset_bytes(index); }
  int64_t offset_bytes(int64_t index) const { return index * data_type_bits(type_) / 8; }

  bool operator==(const ElementBuffer&) const = default;

 private:
  DataType type_ = DataType::kBFloat16;
  std::vector<uint8_t> bytes_;
};

}  // namespace pagejit
