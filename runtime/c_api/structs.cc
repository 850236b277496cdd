#include "runtime/c_api/structs.h"

#include "runtime/format.h"

namespace pagejit::c_api {

Status check_struct_size(const char* name, size_t given, size_t first, size_t known) {
  if (given >= first && given <= kMaxStructSize) return {};
  return Status(
      StatusCode::kInvalidArgument,
      format("{}.struct_size {}: must be {}, as {}_init() sets it{}", name, given, known, name,
             first == known ? "" : format(", or of an earlier version, from {} on", first)));
}

Status check_unknown_bytes(const char* name, const void* fields, size_t given, size_t known) {
  const char* bytes = static_cast<const char*>(fields);
  for (size_t i = known; i < given; ++i) {
    if (bytes[i] == 0) continue;
    return Status(StatusCode::kUnsupported,
                  format("{}: made for a newer libpagejit than {}: struct_size {} is more than {}, "
                         "and byte {} is not 0",
                         name, pagejit_version_text(), given, known, i));
  }
  return {};
}

void Fields::refuse(const char* field, int32_t value, int32_t greatest) {
  if (!status_) return;
  status_ = Status(StatusCode::kInvalidArgument,
                   format("{}.{} {}: must be {}", struct_name_, field, value,
                          greatest == 1 ? "0 or 1" : format("in [0, {}]", greatest)));
}

void Fields::refuse_reserved(int32_t value) {
  if (!status_) return;
  status_ = Status(StatusCode::kUnsupported,
                   format("{}: a reserved field is {}, which must be 0: made for a newer "
                          "libpagejit than {}",
                          struct_name_, value, pagejit_version_text()));
}

Status write_text(std::string_view text, char* buffer, size_t buffer_size, size_t* length) {
  if (buffer == nullptr && buffer_size != 0) {
    return Status(StatusCode::kInvalidArgument,
                  format("buffer: null, but buffer_size is {}", buffer_size));
  }
  if (length != nullptr) *length = text.size();
  if (buffer == nullptr) return {};
  if (buffer_size <= text.size()) {
    return Status(StatusCode::kInvalidArgument,
                  format("buffer_size {}: must be at least {}", buffer_size, text.size() + 1));
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return {};
}

}  // namespace pagejit::c_api
