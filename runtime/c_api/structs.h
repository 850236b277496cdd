// The rules of struct_size, and what the structs' fields may hold. Thread-safety: free functions
// without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/c_api/call.h"

namespace pagejit::c_api {

// The size of a struct's first version. Specialised where one has grown since.
template <class Struct>
inline constexpr size_t kFirstSize = sizeof(Struct);

// A larger struct_size is no newer version but memory that was never initialised. Twice as much as
// any struct has.
inline constexpr size_t kMaxStructSize = 2048;

// kInvalidArgument, naming struct, size and what is legal.
Status check_struct_size(const char* name, size_t given, size_t first, size_t known);
// kUnsupported where a byte of [known, given) is not 0.
Status check_unknown_bytes(const char* name, const void* fields, size_t given, size_t known);

// A struct of the caller's: null, its size, what this version does not know. The struct with all
// fields of this version: its own memory, or `copy` where the caller's is of an older version, with
// 0 in what it does not have. Null where it is refused, and *refusal says why.
template <class Struct>
const Struct* open_struct(const char* name, const Struct* given, Struct* copy, Status* refusal) {
  if (given == nullptr) {
    *refusal = null_argument(name);
    return nullptr;
  }
  const size_t size = given->struct_size;
  if (size == sizeof(Struct)) [[likely]] {
    return given;
  }
  *refusal = check_struct_size(name, size, kFirstSize<Struct>, sizeof(Struct));
  if (!*refusal) return nullptr;
  if (size > sizeof(Struct)) {
    *refusal = check_unknown_bytes(name, given, size, sizeof(Struct));
    return *refusal ? given : nullptr;
  }
  std::memset(static_cast<void*>(copy), 0, sizeof(Struct));
  std::memcpy(static_cast<void*>(copy), given, size);
  return copy;
}

// A struct that is to be filled. Null where `optional`, too.
template <class Struct>
Status check_output(const char* name, const Struct* out) {
  if (out == nullptr) return null_argument(name);
  if (out->struct_size == sizeof(Struct)) return {};
  return check_struct_size(name, out->struct_size, kFirstSize<Struct>, sizeof(Struct));
}
template <class Struct>
Status check_optional_output(const char* name, const Struct* out) {
  return out == nullptr ? Status() : check_output(name, out);
}

// Fills a struct that was checked: as far as it reaches; what this version does not know becomes 0.
template <class Struct>
void fill(Struct* out, Struct value) {
  const size_t size = out->struct_size;
  value.struct_size = size;
  std::memcpy(static_cast<void*>(out), &value, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct)) {
    std::memset(reinterpret_cast<char*>(out) + sizeof(Struct), 0, size - sizeof(Struct));
  }
}
template <class Struct>
void fill_optional(Struct* out, const Struct& value) {
  if (out != nullptr) fill(out, value);
}

// _init: the size and the defaults.
template <class Struct>
pagejit_status init_struct(Struct* out, size_t struct_size, const Struct& defaults) noexcept {
  if (out == nullptr || struct_size < kFirstSize<Struct> || struct_size > kMaxStructSize) {
    return PAGEJIT_INVALID_ARGUMENT;
  }
  out->struct_size = struct_size;
  fill(out, defaults);
  return PAGEJIT_OK;
}

// Reads the fields of one struct that hold a number of an enumeration, 0 or 1, or nothing yet. The
// first that is not legal makes status().
class Fields {
 public:
  explicit Fields(const char* struct_name) : struct_name_(struct_name) {}

  // `last`: the greatest enumerator; all from 0 on are legal.
  template <class Enum>
  Enum enumerator(const char* field, int32_t value, Enum last) {
    const int32_t greatest = static_cast<int32_t>(last);
    if (value < 0 || value > greatest) [[unlikely]] {
      refuse(field, value, greatest);
    }
    return static_cast<Enum>(value);
  }
  bool flag(const char* field, int32_t value) {
    if (value < 0 || value > 1) [[unlikely]] {
      refuse(field, value, 1);
    }
    return value != 0;
  }
  void reserved(int32_t value) {
    if (value != 0) [[unlikely]] {
      refuse_reserved(value);
    }
  }
  const Status& status() const { return status_; }

 private:
  [[gnu::cold]] void refuse(const char* field, int32_t value, int32_t greatest);
  [[gnu::cold]] void refuse_reserved(int32_t value);

  const char* struct_name_;
  Status status_;
};

// The rules of a text that goes into the caller's buffer (pagejit/pagejit.h).
Status write_text(std::string_view text, char* buffer, size_t buffer_size, size_t* length);

}  // namespace pagejit::c_api
