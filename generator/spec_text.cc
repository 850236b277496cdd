#include "generator/spec_text.h"

#include <utility>

namespace pagejit {

Status must_be(std::string_view field, std::string_view value, std::string_view legal) {
  return Status(StatusCode::kInvalidArgument,
                std::string(field) + " " + std::string(value) + ": must be " + std::string(legal));
}

Status invalid_spec(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status check_alignment(std::string_view field, int alignment, int least) {
  if (alignment >= least && alignment <= 16 && (alignment & (alignment - 1)) == 0) return {};
  return invalid_spec(std::string(field) + " " + std::to_string(alignment) +
                      ": must be a power of two in [" + std::to_string(least) + ", 16]");
}

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

Status check_scale(KvScale scale) {
  return check_enum("scale", scale, KvScale::kTokenHead,
                    "none (0), tensor (1), head (2) and token_head (3)");
}

Status check_layout(KvLayout layout, KvLayout last, int head_size, DataType kv_dtype) {
  const std::string_view legal =
      last == KvLayout::kVllm ? "rows (0) and vllm (1)" : "rows (0), vllm (1) and ds_mla (2)";
  if (Status s = check_enum("layout", layout, last, legal); !s) return s;
  if (layout != KvLayout::kVllm) return {};
  if (kv_dtype == DataType::kInt4) {
    return Status(StatusCode::kInvalidArgument,
                  "layout vllm (1): must be rows (0) where kv_dtype is int4");
  }
  const int chunk = 16 / data_type_bytes(kv_dtype);
  if (head_size % chunk == 0) return {};
  return Status(StatusCode::kInvalidArgument,
                "head_size " + std::to_string(head_size) + ": must be a multiple of " +
                    std::to_string(chunk) + " where layout is vllm (1) and kv_dtype " +
                    std::string(data_type_name(kv_dtype)));
}

Status check_head_sizes(int head_size, int head_size_v, DataType kv_dtype) {
  constexpr int kMost = 4096;
  Status status = check_range("head_size", head_size, 1, kMost);
  if (status) status = check_range("head_size_v", head_size_v, 0, kMost);
  if (!status || kv_dtype != DataType::kInt4) return status;
  if (head_size % 2 == 0 && head_size_v % 2 == 0) return {};
  const bool is_key = head_size % 2 != 0;
  return Status(StatusCode::kInvalidArgument, (is_key ? "head_size " : "head_size_v ") +
                                                  std::to_string(is_key ? head_size : head_size_v) +
                                                  ": must be even where kv_dtype is int4");
}

Status check_codes_fill_bytes(int alignment, DataType kv_dtype, std::string_view wide_field,
                              DataType wide_type) {
  const int pair_bytes = 2 * data_type_bytes(wide_type);
  if (kv_dtype != DataType::kInt4 || alignment >= pair_bytes) return {};
  return Status(StatusCode::kInvalidArgument,
                "row_alignment " + std::to_string(alignment) +
                    ": must be at least two elements of " + std::string(wide_field) + " (" +
                    std::to_string(pair_bytes) + ") where kv_dtype is int4");
}

Status check_block_size(int block_size) { return check_range("block_size", block_size, 1, 65536); }

Status check_row_alignment(int alignment, DataType dtype) {
  const int least = data_type_bytes(dtype);
  if (alignment >= least && alignment <= 16 && (alignment & (alignment - 1)) == 0) return {};
  return Status(StatusCode::kInvalidArgument, "row_alignment " + std::to_string(alignment) +
                                                  ": must be a power of two in [" +
                                                  std::to_string(least) + ", 16] for dtype " +
                                                  std::string(data_type_name(dtype)));
}

Status check_rope_style(RopeStyle rope, DataType cos_sin_dtype) {
  if (Status s = check_enum("rope", rope, RopeStyle::kInterleaved,
                            "none (0), neox (1) and interleaved (2)");
      !s) {
    return s;
  }
  if (Status s = check_wide_type("cos_sin_dtype", cos_sin_dtype); !s) return s;
  if (rope != RopeStyle::kNone || cos_sin_dtype == DataType::kFloat32) return {};
  return Status(StatusCode::kInvalidArgument, "cos_sin_dtype " +
                                                  std::string(data_type_name(cos_sin_dtype)) +
                                                  ": must be f32 where rope is none (0)");
}

Status check_pair_fits(RopeStyle rope, int alignment, DataType dtype) {
  const int pair_bytes = 2 * data_type_bytes(dtype);
  if (rope != RopeStyle::kInterleaved || alignment >= pair_bytes) return {};
  return Status(StatusCode::kInvalidArgument, "row_alignment " + std::to_string(alignment) +
                                                  ": must be at least a pair of elements (" +
                                                  std::to_string(pair_bytes) +
                                                  ") where rope is interleaved (2)");
}

int vector_that_divides(int most, std::initializer_list<int> counts) {
  int elements = most;
  for (const int count : counts) {
    while (count % elements != 0) elements /= 2;
  }
  return elements;
}

int threads_per_row(int elements, int vector_elements) {
  int threads = 1;
  while (threads < 32 && threads * vector_elements < elements) threads *= 2;
  return threads;
}

std::string scale_text(KvScale scale) {
  return std::string(kScaleNames[static_cast<size_t>(scale)]);
}

std::string scale_constant(pagejit_shared::KvScale scale) {
  constexpr const char* kNames[] = {"kNone", "kTensor", "kHead", "kTokenHead"};
  return kNames[static_cast<int>(scale)];
}

std::string_view layout_text(KvLayout layout) { return kLayoutNames[static_cast<size_t>(layout)]; }

std::string layout_constant(pagejit_shared::KvLayout layout) {
  constexpr const char* kNames[] = {"kRows", "kVllm", "kDsMla"};
  return kNames[static_cast<int>(layout)];
}

std::string rope_text(RopeStyle rope) { return std::string(kRopeNames[static_cast<size_t>(rope)]); }

std::string rope_constant(pagejit_shared::RopeStyle rope) {
  constexpr const char* kNames[] = {"kNone", "kNeox", "kInterleaved"};
  return kNames[static_cast<int>(rope)];
}

bool is_small(DataType type) { return data_type_bits(type) <= 8; }

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
    case pagejit_shared::Element::kFloat8E4m3:
      return "kFloat8E4m3";
    case pagejit_shared::Element::kFloat8E5m2:
      return "kFloat8E5m2";
    case pagejit_shared::Element::kInt8:
      return "kInt8";
    case pagejit_shared::Element::kInt4:
      return "kInt4";
  }
  return "unknown";
}

std::string row_alignment_text(int alignment) {
  return alignment == 16 ? "" : text_field("row_alignment", alignment);
}

std::string row_alignment_suffix(int alignment) {
  return alignment == 16 ? "" : "_a" + std::to_string(alignment);
}

std::string debug_suffix(bool debug) { return debug ? "_debug" : ""; }

std::string banner(std::string_view what, const std::string& canonical_text) {
  return "// " + std::string(what) + ", generated by pagejit for\n//   " + canonical_text;
}

std::string bool_text(bool value) { return value ? "true" : "false"; }

}  // namespace pagejit
