// What the specs of all small families share: the checks of their fields and the pieces of their
// canonical texts. Thread-safety: free functions without state.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "pagejit/cache_write.h"
#include "templates/shared/cache_write_params.h"

namespace pagejit {

// kInvalidArgument "field value: must be `legal`".
Status must_be(std::string_view field, std::string_view value, std::string_view legal);
// Tokens per KV block, at most.
inline constexpr int kMaxBlockSize = 65536;

// kInvalidArgument.
Status invalid_spec(std::string message);

// kInvalidArgument "field value: must be in [low, high]".
Status check_range(std::string_view field, int value, int low, int high);

// kInvalidArgument "field value: must be a power of two in [least, 16]".
Status check_alignment(std::string_view field, int alignment, int least);

// kInvalidArgument "field name: legal are f16, bf16 and f32".
Status check_wide_type(std::string_view field, DataType type);

// Of 8 or 4 bits: with scales.
bool is_small(DataType type);

// kInvalidArgument "field number: legal are ..." for numbers beyond the last enumerator.
template <class Enum>
Status check_enum(std::string_view field, Enum value, Enum last, std::string_view legal) {
  const int number = static_cast<int>(value);
  if (number >= 0 && number <= static_cast<int>(last)) return {};
  return Status(StatusCode::kInvalidArgument, std::string(field) + " " + std::to_string(number) +
                                                  ": legal are " + std::string(legal));
}
Status check_scale(KvScale scale);
// That it is not behind `last`, also that chunks of keys divide the head, and that int4 has rows.
Status check_layout(KvLayout layout, KvLayout last, int head_size, DataType kv_dtype);
// Head sizes of K and V (0: K's), in [1, 4096], of int4 even.
Status check_head_sizes(int head_size, int head_size_v, DataType kv_dtype);
// That a vector of `alignment` bytes of the wide type holds a byte of codes where kv_dtype is int4.
Status check_codes_fill_bytes(int alignment, DataType kv_dtype, std::string_view wide_field,
                              DataType wide_type);

// Of a cache's blocks: tokens, in [1, 65536].
Status check_block_size(int block_size);
// That rows of `dtype` may be aligned to so many bytes: an element or more, 16 at most.
Status check_row_alignment(int alignment, DataType dtype);
// That the style is one, and that cos_sin_dtype is a wide type, f32 where nothing rotates.
Status check_rope_style(RopeStyle rope, DataType cos_sin_dtype);
// That a vector of `alignment` bytes holds a pair of elements where these turn together.
Status check_pair_fits(RopeStyle rope, int alignment, DataType dtype);

// The most elements, a power of two and at most `most` (one too), that divide all counts.
int vector_that_divides(int most, std::initializer_list<int> counts);
// A power of two and at most a warp: so many threads do a row of `elements`, a vector each, in
// turns where they are too few.
int threads_per_row(int elements, int vector_elements);

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

// "token_head" and the like; the kernel's constants.
std::string scale_text(KvScale scale);
std::string scale_constant(pagejit_shared::KvScale scale);
// The words of canonical texts, by their numbers.
inline constexpr std::string_view kLayoutNames[] = {"rows", "vllm", "ds_mla"};
inline constexpr std::string_view kQueriesNames[] = {"decode", "few", "many", "shared"};
inline constexpr std::string_view kCausalityNames[] = {"0", "1", "sequence"};
inline constexpr std::string_view kTableNames[] = {"blocks", "csr", "contiguous", "slots",
                                                   "positions"};
inline constexpr std::string_view kScaleNames[] = {"none", "tensor", "head", "token_head"};
inline constexpr std::string_view kRopeNames[] = {"none", "neox", "interleaved"};
inline constexpr std::string_view kMlaFormatNames[] = {"plain", "fp8_e4m3", "fp8_ds_mla"};
std::string_view layout_text(KvLayout layout);
std::string layout_constant(pagejit_shared::KvLayout layout);
std::string rope_text(RopeStyle rope);
std::string rope_constant(pagejit_shared::RopeStyle rope);

// " row_alignment=value" and "_avalue", of a kernel's name, where it is not 16.
std::string row_alignment_text(int alignment);
std::string row_alignment_suffix(int alignment);

// "_debug" where it is set: of kernel names.
std::string debug_suffix(bool debug);

// The comment in front of a kernel text.
std::string banner(std::string_view what, const std::string& canonical_text);

// "true" or "false".
std::string bool_text(bool value);

}  // namespace pagejit
