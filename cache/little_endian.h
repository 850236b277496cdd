// Fixed-width integers as little-endian bytes, the same on every host. Not for signed values or
// unchecked input: the caller has compared sizes before it loads. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagejit::cache {

inline void append_little_endian(std::string* out, uint64_t value, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// bytes.size() >= offset + num_bytes is required.
inline uint64_t load_little_endian(std::string_view bytes, size_t offset, size_t num_bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < num_bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[offset + i])) << (8 * i);
  }
  return value;
}

}  // namespace pagejit::cache
