#include "generator/spec_text.h"

namespace pagejit {

Status check_range(std::string_view field, int value, int low, int high) {
  if (value >= low && value <= high) return Status::ok();
  return Status(StatusCode::kInvalidArgument, std::string(field) + " " + std::to_string(value) +
                                                  ": must be in [" + std::to_string(low) + ", " +
                                                  std::to_string(high) + "]");
}

Status check_wide_type(std::string_view field, DataType type) {
  if (type == DataType::kFloat16 || type == DataType::kBFloat16 || type == DataType::kFloat32) {
    return Status::ok();
  }
  return Status(StatusCode::kInvalidArgument, std::string(field) + " " +
                                                  std::to_string(static_cast<int>(type)) +
                                                  ": legal are f16 (0), bf16 (1) and f32 (2)");
}

bool is_8_bit(DataType type) { return data_type_bytes(type) == 1; }

bool has_float8_convert(const Target& target) { return target.sm >= 89; }

std::string text_field(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=" + std::string(value);
}

std::string text_field(std::string_view name, int value) {
  return text_field(name, std::to_string(value));
}

std::string text_switch(std::string_view name, bool value) {
  return value ? text_field(name, "1") : "";
}

pagejit_shared::Element element_of(DataType type) {
  return static_cast<pagejit_shared::Element>(type);
}

std::string element_name(pagejit_shared::Element element) {
  switch (element) {
    case pagejit_shared::Element::kFloat16:
      return "kFloat16";
    case pagejit_shared::Element::kBFloat16:
      return "kBFloat16";
    case pagejit_shared::Element::kFloat32:
      return "kFloat32";
    case pagejit_shared::Element::kFloat8E4M3:
      return "kFloat8E4M3";
    case pagejit_shared::Element::kFloat8E5M2:
      return "kFloat8E5M2";
    case pagejit_shared::Element::kInt8:
      return "kInt8";
  }
  return "unknown";
}

std::string bool_text(bool value) { return value ? "true" : "false"; }

}  // namespace pagejit
