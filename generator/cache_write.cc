#include "generator/cache_write.h"

#include <algorithm>

#include "generator/arch.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

constexpr int kThreads = 128;

Status check_quantisation(const CacheWriteSpec& spec) {
  if (Status s = check_scale(spec.scale); !s) return s;
  const std::string type(data_type_name(spec.kv_dtype));
  const std::string scale = "scale " + std::to_string(static_cast<int>(spec.scale));
  if (spec.kv_dtype == spec.dtype) {
    if (spec.scale == KvScale::kNone) return {};
    return invalid_spec(scale + ": must be none (0) where kv_dtype is dtype (" + type + ")");
  }
  if (!is_small(spec.kv_dtype)) {
    return invalid_spec("kv_dtype " + type + ": must be dtype (" +
                        std::string(data_type_name(spec.dtype)) +
                        "), fp8_e4m3, fp8_e5m2, int8 or int4");
  }
  if (spec.scale == KvScale::kNone) {
    return invalid_spec(
        scale + ": must be tensor (1), head (2) or token_head (3) where kv_dtype is " + type);
  }
  const bool is_integer = spec.kv_dtype == DataType::kInt8 || spec.kv_dtype == DataType::kInt4;
  if (is_integer && spec.scale != KvScale::kTokenHead) {
    return invalid_spec(scale + ": must be token_head (3) where kv_dtype is " + type);
  }
  return {};
}

Status check_rope(const CacheWriteSpec& spec) {
  if (Status s = check_rope_style(spec.rope, spec.cos_sin_dtype); !s) return s;
  const std::string rotary_dim = "rotary_dim " + std::to_string(spec.rotary_dim);
  if (spec.rope == RopeStyle::kNone) {
    if (spec.rotary_dim == 0) return {};
    return invalid_spec(rotary_dim + ": must be 0 where rope is none (0)");
  }
  if (spec.rotary_dim < 2 || spec.rotary_dim > spec.head_size || spec.rotary_dim % 2 != 0) {
    return invalid_spec(rotary_dim + ": must be even and in [2, head_size (" +
                        std::to_string(spec.head_size) + ")]");
  }
  if (spec.rope == RopeStyle::kNeox && spec.kv_dtype == DataType::kInt4 &&
      spec.rotary_dim % 4 != 0) {
    return invalid_spec(rotary_dim +
                        ": must be a multiple of 4 where kv_dtype is int4 and rope neox (1)");
  }
  if (spec.rope != RopeStyle::kInterleaved) return {};
  if (spec.head_size % 2 != 0 || spec.head_size_v % 2 != 0) {
    const bool is_key = spec.head_size % 2 != 0;
    return invalid_spec((is_key ? "head_size " : "head_size_v ") +
                        std::to_string(is_key ? spec.head_size : spec.head_size_v) +
                        ": must be even where rope is interleaved (2)");
  }
  return check_pair_fits(spec.rope, spec.row_alignment, spec.dtype);
}

Status check_rows(const CacheWriteSpec& spec) {
  if (Status s = check_head_sizes(spec.head_size, spec.head_size_v, spec.kv_dtype); !s) return s;
  if (Status s = check_block_size(spec.block_size); !s) return s;
  if (Status s = check_row_alignment(spec.row_alignment, spec.dtype); !s) return s;
  if (Status s = check_codes_fill_bytes(spec.row_alignment, spec.kv_dtype, "dtype", spec.dtype);
      !s) {
    return s;
  }
  return check_layout(spec.layout, KvLayout::kVllm, spec.head_size, spec.kv_dtype);
}

int vector_elements(const CacheWriteSpec& spec) {
  // Of elements that turn together, whole vectors; 0 is a multiple of all.
  const int turned = spec.rope == RopeStyle::kNeox ? spec.rotary_dim / 2 : spec.rotary_dim;
  return vector_that_divides(spec.row_alignment / data_type_bytes(spec.dtype),
                             {spec.head_size, value_head_size(spec), turned});
}

std::string kernel_name(const CacheWriteSpec& spec) {
  std::string name = "pagejit_cache_write_";
  name += data_type_name(spec.dtype);
  name += "_" + std::string(data_type_name(spec.kv_dtype));
  if (spec.scale != KvScale::kNone) name += "_" + scale_text(spec.scale);
  name += "_d" + std::to_string(spec.head_size);
  if (value_head_size(spec) != spec.head_size) name += "_v" + std::to_string(spec.head_size_v);
  name += "_b" + std::to_string(spec.block_size);
  if (spec.layout == KvLayout::kVllm) name += "_vllm";
  if (spec.rope != RopeStyle::kNone) {
    name += "_" + rope_text(spec.rope) + std::to_string(spec.rotary_dim) + "_" +
            std::string(data_type_name(spec.cos_sin_dtype));
  }
  name += row_alignment_suffix(spec.row_alignment);
  name += debug_suffix(spec.debug);
  if (spec.pdl) name += "_pdl";
  return name;
}

}  // namespace

template <>
Status validate(const CacheWriteSpec& spec) {
  if (Status s = check_wide_type("dtype", spec.dtype); !s) return s;
  if (static_cast<int>(spec.kv_dtype) > static_cast<int>(DataType::kInt4)) {
    return invalid_spec("kv_dtype " + std::to_string(static_cast<int>(spec.kv_dtype)) +
                        ": must be dtype (" + std::string(data_type_name(spec.dtype)) +
                        "), fp8_e4m3, fp8_e5m2, int8 or int4");
  }
  if (Status s = check_quantisation(spec); !s) return s;
  if (Status s = check_rows(spec); !s) return s;
  return check_rope(spec);
}

template <>
Status supports(const CacheWriteSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const CacheWriteSpec& spec) {
  const CacheWriteSpec defaults;
  std::string text = "cache_write" + text_field("dtype", data_type_name(spec.dtype)) +
                     text_field("kv", data_type_name(spec.kv_dtype)) +
                     text_field("scale", scale_text(spec.scale)) +
                     text_field("head_size", spec.head_size);
  if (value_head_size(spec) != spec.head_size) text += text_field("head_size_v", spec.head_size_v);
  text += text_field("block_size", spec.block_size);
  if (spec.layout == KvLayout::kVllm) text += text_field("layout", "vllm");
  if (spec.rope != RopeStyle::kNone) {
    text += text_field("rope", rope_text(spec.rope)) + text_field("rotary_dim", spec.rotary_dim);
  }
  if (spec.cos_sin_dtype != defaults.cos_sin_dtype) {
    text += text_field("cos_sin", data_type_name(spec.cos_sin_dtype));
  }
  text += row_alignment_text(spec.row_alignment);
  return text + text_switch("debug", spec.debug) + text_switch("pdl", spec.pdl);
}

Result<CacheWriteConfig> plan(const CacheWriteSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  if (Status s = check_pdl(spec.pdl, target); !s) return s;
  const int vector = vector_elements(spec);
  // In a rotation of this kind a thread does two vectors at once.
  const int elements = spec.rope == RopeStyle::kNeox
                           ? spec.rotary_dim / 2
                           : std::max(spec.head_size, value_head_size(spec));
  return CacheWriteConfig{
      .spec = spec,
      .target = target,
      .constants = {.dtype = element_of(spec.dtype),
                    .kv = element_of(spec.kv_dtype),
                    .cos_sin = element_of(spec.cos_sin_dtype),
                    .scale = static_cast<pagejit_shared::KvScale>(spec.scale),
                    .layout = static_cast<pagejit_shared::KvLayout>(spec.layout),
                    .rope = static_cast<pagejit_shared::RopeStyle>(spec.rope),
                    .head_size = spec.head_size,
                    .head_size_v = value_head_size(spec),
                    .rotary_dim = spec.rotary_dim,
                    .block_size = spec.block_size,
                    .vector_elements = vector,
                    .threads_per_row = threads_per_row(elements, vector),
                    .num_threads = kThreads,
                    .has_float8_convert = has_float8_convert(target),
                    .debug = spec.debug}};
}

EntryText entry_text(const CacheWriteConfig& config) {
  const pagejit_shared::CacheWriteConfig& c = config.constants;
  const auto number = [](int value) { return std::to_string(value); };
  return {.file = "cache_write/cache_write.cu.tmpl",
          .kernel_name = kernel_name(config.spec),
          .banner = banner("Cache write", canonical_text(config.spec)) + "\n// " +
                    number(c.vector_elements) + " elements per access; " +
                    number(c.threads_per_row) + " threads per row; " +
                    number(pagejit_shared::rows_per_cta(c)) + " rows per CTA.",
          .values = {{"dtype", element_name(c.dtype)},
                     {"kv", element_name(c.kv)},
                     {"cos_sin", element_name(c.cos_sin)},
                     {"scale", scale_constant(c.scale)},
                     {"layout", layout_constant(c.layout)},
                     {"rope", rope_constant(c.rope)},
                     {"head_size", number(c.head_size)},
                     {"head_size_v", number(c.head_size_v)},
                     {"rotary_dim", number(c.rotary_dim)},
                     {"block_size", number(c.block_size)},
                     {"vector_elements", number(c.vector_elements)},
                     {"threads_per_row", number(c.threads_per_row)},
                     {"num_threads", number(c.num_threads)},
                     {"has_float8_convert", bool_text(c.has_float8_convert)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", kernel_name(config.spec)}},
          .switches = {{"PAGEJIT_PDL", config.spec.pdl}},
          .pdl = config.spec.pdl};
}

}  // namespace pagejit
