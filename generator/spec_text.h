// What the specs of all small families share: the checks of their fields and the pieces of their
// canonical texts. Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "pagejit/spec.h"
#include "templates/shared/elements.h"

namespace pagejit {

// kInvalidArgument "field value: must be in [low, high]".
Status check_range(std::string_view field, int value, int low, int high);

// kInvalidArgument "field name: legal are f16, bf16 and f32".
Status check_wide_type(std::string_view field, DataType type);

bool is_8_bit(DataType type);

// Whether the target has instructions that round f32 to 8-bit floats.
bool has_float8_convert(const Target& target);

// " name=value".
std::string text_field(std::string_view name, std::string_view value);
std::string text_field(std::string_view name, int value);
// " name=1" where it is set.
std::string text_switch(std::string_view name, bool value);

// The kernel's constant of a type, and its name in the kernel text.
pagejit_shared::Element element_of(DataType type);
std::string element_name(pagejit_shared::Element element);

// "true" or "false".
std::string bool_text(bool value);

}  // namespace pagejit
