#include "generator/cache_ops.h"

#include <algorithm>

#include "generator/arch.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

constexpr int kThreads = 128;
// Vectors in flight per thread: 128 threads x 8 x 16 bytes are 16 KiB per CTA.
constexpr int kCopiesPerThread = 8;

bool is_float8(DataType type) {
  return type == DataType::kFloat8E4m3 || type == DataType::kFloat8E5m2;
}

std::string type_text(DataType type) { return std::string(data_type_name(type)); }

std::string copy_name(const CopyBlocksSpec& spec) {
  return "pagejit_copy_blocks_a" + std::to_string(spec.alignment) + debug_suffix(spec.debug);
}

std::string gather_name(const GatherCacheSpec& spec) {
  std::string name =
      "pagejit_gather_cache_" + type_text(spec.kv_dtype) + "_" + type_text(spec.out_dtype);
  if (spec.scale != KvScale::kNone) name += "_" + scale_text(spec.scale);
  name += "_d" + std::to_string(spec.head_size);
  if (value_head_size(spec) != spec.head_size) name += "_v" + std::to_string(spec.head_size_v);
  name += "_b" + std::to_string(spec.block_size);
  if (spec.layout != KvLayout::kRows) name += "_" + std::string(layout_text(spec.layout));
  name += row_alignment_suffix(spec.row_alignment);
  return name + debug_suffix(spec.debug);
}

// The row of 656 bytes has one shape.
Status check_ds_mla(const GatherCacheSpec& spec) {
  const std::string where = " where layout is ds_mla (2)";
  const std::string scale = std::to_string(static_cast<int>(spec.scale));
  if (spec.kv_dtype != DataType::kFloat8E4m3) {
    return must_be("kv_dtype", type_text(spec.kv_dtype), "fp8_e4m3" + where);
  }
  if (spec.scale != KvScale::kNone) return must_be("scale", scale, "none (0)" + where);
  if (spec.head_size != 576) {
    return must_be("head_size", std::to_string(spec.head_size), "576" + where);
  }
  if (spec.head_size_v != 0) {
    return must_be("head_size_v", std::to_string(spec.head_size_v), "0" + where);
  }
  if (spec.row_alignment >= 4) return {};
  return must_be("row_alignment", std::to_string(spec.row_alignment), "at least 4" + where);
}

std::string convert_name(const ConvertFloat8Spec& spec) {
  return "pagejit_convert_" + type_text(spec.from_dtype) + "_" + type_text(spec.to_dtype);
}

}  // namespace

template <>
Status validate(const CopyBlocksSpec& spec) {
  return check_alignment("alignment", spec.alignment, 1);
}

template <>
Status validate(const GatherCacheSpec& spec) {
  if (Status s = check_wide_type("out_dtype", spec.out_dtype); !s) return s;
  if (static_cast<int>(spec.kv_dtype) > static_cast<int>(DataType::kInt4)) {
    return invalid_spec("kv_dtype " + std::to_string(static_cast<int>(spec.kv_dtype)) +
                        ": legal are f16, bf16, f32, fp8_e4m3, fp8_e5m2, int8 and int4");
  }
  if (Status s = check_scale(spec.scale); !s) return s;
  const std::string scale = "scale " + std::to_string(static_cast<int>(spec.scale));
  const bool is_ds_mla = spec.layout == KvLayout::kDsMla;
  if (!is_small(spec.kv_dtype) && spec.scale != KvScale::kNone) {
    return invalid_spec(scale + ": must be none (0) where kv_dtype is " + type_text(spec.kv_dtype));
  }
  if (spec.kv_dtype == DataType::kInt4 && spec.scale != KvScale::kTokenHead) {
    return invalid_spec(scale + ": must be token_head (3) where kv_dtype is int4");
  }
  if (is_small(spec.kv_dtype) && spec.scale == KvScale::kNone && !is_ds_mla) {
    return invalid_spec(scale +
                        ": must be tensor (1), head (2) or token_head (3) where kv_dtype is " +
                        type_text(spec.kv_dtype));
  }
  if (Status s = check_layout(spec.layout, KvLayout::kDsMla, spec.head_size, spec.kv_dtype); !s) {
    return s;
  }
  if (Status s = check_head_sizes(spec.head_size, spec.head_size_v, spec.kv_dtype); !s) return s;
  if (Status s = check_block_size(spec.block_size); !s) return s;
  const int widest = std::max(data_type_bytes(spec.kv_dtype), data_type_bytes(spec.out_dtype));
  if (Status s = check_alignment("row_alignment", spec.row_alignment, widest); !s) return s;
  if (is_ds_mla) return check_ds_mla(spec);
  return check_codes_fill_bytes(spec.row_alignment, spec.kv_dtype, "out_dtype", spec.out_dtype);
}

template <>
Status validate(const ConvertFloat8Spec& spec) {
  const bool to_float8 = is_float8(spec.to_dtype);
  if (to_float8 == is_float8(spec.from_dtype)) {
    return invalid_spec("from_dtype " + type_text(spec.from_dtype) +
                        ": one of from_dtype and to_dtype (" + type_text(spec.to_dtype) +
                        ") must be fp8_e4m3 or fp8_e5m2, the other not");
  }
  return to_float8 ? check_wide_type("from_dtype", spec.from_dtype)
                   : check_wide_type("to_dtype", spec.to_dtype);
}

template <>
Status supports(const CopyBlocksSpec& spec, const Target& target) {
  return plan(spec, target).status();
}
template <>
Status supports(const GatherCacheSpec& spec, const Target& target) {
  return plan(spec, target).status();
}
template <>
Status supports(const ConvertFloat8Spec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const CopyBlocksSpec& spec) {
  return "copy_blocks" + text_field("alignment", spec.alignment) + text_switch("debug", spec.debug);
}

template <>
std::string canonical_text(const GatherCacheSpec& spec) {
  std::string text = "gather_cache" + text_field("kv", data_type_name(spec.kv_dtype)) +
                     text_field("out", data_type_name(spec.out_dtype)) +
                     text_field("scale", scale_text(spec.scale)) +
                     text_field("head_size", spec.head_size);
  if (value_head_size(spec) != spec.head_size) text += text_field("head_size_v", spec.head_size_v);
  text += text_field("block_size", spec.block_size);
  if (spec.layout != KvLayout::kRows) text += text_field("layout", layout_text(spec.layout));
  text += row_alignment_text(spec.row_alignment);
  return text + text_switch("debug", spec.debug);
}

template <>
std::string canonical_text(const ConvertFloat8Spec& spec) {
  return "convert_float8" + text_field("from", data_type_name(spec.from_dtype)) +
         text_field("to", data_type_name(spec.to_dtype));
}

Result<CopyBlocksConfig> plan(const CopyBlocksSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  return CopyBlocksConfig{.spec = spec,
                          .target = target,
                          .constants = {.vector_bytes = spec.alignment,
                                        .copies_per_thread = kCopiesPerThread,
                                        .num_threads = kThreads,
                                        .debug = spec.debug}};
}

Result<GatherCacheConfig> plan(const GatherCacheSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  const int widest = std::max(data_type_bytes(spec.kv_dtype), data_type_bytes(spec.out_dtype));
  const int vector =
      vector_that_divides(spec.row_alignment / widest, {spec.head_size, value_head_size(spec)});
  const int longest = std::max(spec.head_size, value_head_size(spec));
  return GatherCacheConfig{
      .spec = spec,
      .target = target,
      .constants = {.kv = element_of(spec.kv_dtype),
                    .out = element_of(spec.out_dtype),
                    .scale = static_cast<pagejit_shared::KvScale>(spec.scale),
                    .layout = static_cast<pagejit_shared::KvLayout>(spec.layout),
                    .head_size = spec.head_size,
                    .head_size_v = value_head_size(spec),
                    .block_size = spec.block_size,
                    .vector_elements = vector,
                    .threads_per_row = threads_per_row(longest, vector),
                    .num_threads = kThreads,
                    .debug = spec.debug}};
}

Result<ConvertFloat8Config> plan(const ConvertFloat8Spec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  const int widest = std::max(data_type_bytes(spec.from_dtype), data_type_bytes(spec.to_dtype));
  return ConvertFloat8Config{.spec = spec,
                             .target = target,
                             .constants = {.from = element_of(spec.from_dtype),
                                           .to = element_of(spec.to_dtype),
                                           .vector_elements = 16 / widest,
                                           .num_threads = kThreads,
                                           .has_float8_convert = has_float8_convert(target)}};
}

EntryText entry_text(const CopyBlocksConfig& config) {
  const pagejit_shared::CopyBlocksConfig& c = config.constants;
  return {.file = "copy_blocks/copy_blocks.cu.tmpl",
          .kernel_name = copy_name(config.spec),
          .banner = banner("Copies of blocks", canonical_text(config.spec)),
          .values = {{"vector_bytes", std::to_string(c.vector_bytes)},
                     {"copies_per_thread", std::to_string(c.copies_per_thread)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", copy_name(config.spec)}}};
}

EntryText entry_text(const GatherCacheConfig& config) {
  const pagejit_shared::GatherCacheConfig& c = config.constants;
  return {.file = "gather_cache/gather_cache.cu.tmpl",
          .kernel_name = gather_name(config.spec),
          .banner = banner("Gathering from a cache", canonical_text(config.spec)),
          .values = {{"kv", element_name(c.kv)},
                     {"out", element_name(c.out)},
                     {"scale", scale_constant(c.scale)},
                     {"layout", layout_constant(c.layout)},
                     {"head_size", std::to_string(c.head_size)},
                     {"head_size_v", std::to_string(c.head_size_v)},
                     {"block_size", std::to_string(c.block_size)},
                     {"vector_elements", std::to_string(c.vector_elements)},
                     {"threads_per_row", std::to_string(c.threads_per_row)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", gather_name(config.spec)}}};
}

EntryText entry_text(const ConvertFloat8Config& config) {
  const pagejit_shared::ConvertFloat8Config& c = config.constants;
  return {.file = "convert_float8/convert_float8.cu.tmpl",
          .kernel_name = convert_name(config.spec),
          .banner = banner("Conversion", canonical_text(config.spec)),
          .values = {{"from", element_name(c.from)},
                     {"to", element_name(c.to)},
                     {"vector_elements", std::to_string(c.vector_elements)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"has_float8_convert", bool_text(c.has_float8_convert)},
                     {"kernel_name", convert_name(config.spec)}}};
}

}  // namespace pagejit
