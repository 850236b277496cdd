// From a text to a spec of any family: the inverse of text_of() (families.h), and fields by name.
// Any bytes are legal input. Public parse_spec() (pagejit/spec.h) is here too.
// Pure. Thread-safety: free functions without state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/config.h"

namespace pagejit {

// "attention", "merge_states" and so on, in the order of AnySpec. But for attention, whose texts
// begin with the query lengths, a family's name is the first word of its texts.
std::span<const std::string_view> family_names();
std::string_view family_name(const AnySpec& spec);

// The family's spec with its defaults. kInvalidArgument with the legal names.
Result<AnySpec> default_spec(std::string_view family);

// Sets one field, by its name in a canonical text ("kv") or in the struct ("kv_dtype"), to what a
// canonical text says of it ("fp8_e4m3", "64", "1"); "queries" is "one" ("decode"), "few", "many"
// or "shared". Does not validate the spec. kInvalidArgument: no such field (is_spec_field), or a
// value that it cannot hold, with what is legal.
Status set_spec_field(AnySpec& spec, std::string_view name, std::string_view value);
bool is_spec_field(const AnySpec& spec, std::string_view name);
// The names that canonical texts use, and "queries": "q, kv, head_size".
std::string spec_field_list(const AnySpec& spec);
// Whether two names are of the same field of this family.
bool is_same_field(const AnySpec& spec, std::string_view a, std::string_view b);

// Fields may come in any order; absent ones have their defaults. The result is validated.
// kInvalidArgument or kUnsupported; a word that is not understood is named with its place, in bytes
// from the text's begin.
Result<AnySpec> parse_any_spec(std::string_view text);

// The same for what is made of several kernels, too: the texts of CascadeSpec and of
// SparseAttentionSpec give the kernels that these need. At least one.
Result<std::vector<AnySpec>> parse_kernels(std::string_view text);

}  // namespace pagejit
