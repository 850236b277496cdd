#include "generator/mla_cache_write.h"

#include <algorithm>

#include "generator/arch.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

constexpr int kThreads = 128;
constexpr int kMostElements = 4096;

// The row of 656 bytes has one shape.
Status check_ds_mla(const MlaCacheWriteSpec& spec) {
  const std::string where = " where format is fp8_ds_mla (2)";
  if (spec.dtype == DataType::kFloat32) return must_be("dtype", "f32", "f16 or bf16" + where);
  if (spec.kv_lora_rank != 512) {
    return must_be("kv_lora_rank", std::to_string(spec.kv_lora_rank), "512" + where);
  }
  if (spec.qk_rope_head_dim != 64) {
    return must_be("qk_rope_head_dim", std::to_string(spec.qk_rope_head_dim), "64" + where);
  }
  if (spec.row_alignment >= 4) return {};
  return must_be("row_alignment", std::to_string(spec.row_alignment), "at least 4" + where);
}

Status check_rope(const MlaCacheWriteSpec& spec) {
  if (Status s = check_rope_style(spec.rope, spec.cos_sin_dtype); !s) return s;
  if (spec.rope == RopeStyle::kNone) return {};
  if (spec.grouped) {
    return must_be("rope", std::to_string(static_cast<int>(spec.rope)),
                   "none (0) where grouped is 1");
  }
  const std::string where =
      " where rope is " + rope_text(spec.rope) + (spec.rope == RopeStyle::kNeox ? " (1)" : " (2)");
  if (spec.qk_rope_head_dim == 0 || spec.qk_rope_head_dim % 2 != 0) {
    return must_be("qk_rope_head_dim", std::to_string(spec.qk_rope_head_dim),
                   "even and not 0" + where);
  }
  if (spec.rope == RopeStyle::kInterleaved && spec.kv_lora_rank % 2 != 0) {
    return must_be("kv_lora_rank", std::to_string(spec.kv_lora_rank), "even" + where);
  }
  return check_pair_fits(spec.rope, spec.row_alignment, spec.dtype);
}

std::string format_text(MlaFormat format) {
  return std::string(kMlaFormatNames[static_cast<size_t>(format)]);
}
std::string format_constant(pagejit_shared::MlaFormat format) {
  constexpr const char* kNames[] = {"kPlain", "kE4m3", "kDsMla"};
  return kNames[static_cast<int>(format)];
}

std::string kernel_name(const MlaCacheWriteSpec& spec) {
  std::string name = "pagejit_mla_cache_write_" + std::string(data_type_name(spec.dtype)) + "_" +
                     format_text(spec.format) + "_r" + std::to_string(spec.kv_lora_rank) + "_p" +
                     std::to_string(spec.qk_rope_head_dim) + "_b" + std::to_string(spec.block_size);
  if (spec.rope != RopeStyle::kNone) {
    name += "_" + rope_text(spec.rope) + "_" + std::string(data_type_name(spec.cos_sin_dtype));
  }
  if (spec.row_alignment != MlaCacheWriteSpec{}.row_alignment) {
    name += "_a" + std::to_string(spec.row_alignment);
  }
  if (spec.grouped) name += "_grouped";
  if (spec.debug) name += "_debug";
  if (spec.pdl) name += "_pdl";
  return name;
}

}  // namespace

template <>
Status validate(const MlaCacheWriteSpec& spec) {
  if (Status s = check_wide_type("dtype", spec.dtype); !s) return s;
  if (Status s = check_enum("format", spec.format, MlaFormat::kDsMla,
                            "plain (0), fp8_e4m3 (1) and fp8_ds_mla (2)");
      !s) {
    return s;
  }
  if (Status s = check_range("kv_lora_rank", spec.kv_lora_rank, 1, kMostElements); !s) return s;
  if (Status s = check_range("qk_rope_head_dim", spec.qk_rope_head_dim, 0, kMostElements); !s) {
    return s;
  }
  if (Status s = check_block_size(spec.block_size); !s) return s;
  if (Status s = check_row_alignment(spec.row_alignment, spec.dtype); !s) return s;
  if (spec.format == MlaFormat::kDsMla) {
    if (Status s = check_ds_mla(spec); !s) return s;
  }
  return check_rope(spec);
}

template <>
Status supports(const MlaCacheWriteSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const MlaCacheWriteSpec& spec) {
  const MlaCacheWriteSpec defaults;
  std::string text = "mla_cache_write" + text_field("dtype", data_type_name(spec.dtype)) +
                     text_field("format", format_text(spec.format)) +
                     text_field("kv_lora_rank", spec.kv_lora_rank) +
                     text_field("qk_rope_head_dim", spec.qk_rope_head_dim) +
                     text_field("block_size", spec.block_size);
  if (spec.rope != RopeStyle::kNone) text += text_field("rope", rope_text(spec.rope));
  if (spec.cos_sin_dtype != defaults.cos_sin_dtype) {
    text += text_field("cos_sin", data_type_name(spec.cos_sin_dtype));
  }
  text += text_switch("grouped", spec.grouped);
  if (spec.row_alignment != defaults.row_alignment) {
    text += text_field("row_alignment", spec.row_alignment);
  }
  return text + text_switch("debug", spec.debug) + text_switch("pdl", spec.pdl);
}

Result<MlaCacheWriteConfig> plan(const MlaCacheWriteSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  if (Status s = check_pdl(spec.pdl, target); !s) return s;
  const int rope_elements =
      spec.rope == RopeStyle::kNeox ? spec.qk_rope_head_dim / 2 : spec.qk_rope_head_dim;
  const int vector = vector_that_divides(spec.row_alignment / data_type_bytes(spec.dtype),
                                         {spec.kv_lora_rank, spec.qk_rope_head_dim, rope_elements});
  // Heads of q_pe are the most parts by far; in a rotation by halves a thread does two vectors of
  // one at once.
  const int elements = spec.rope == RopeStyle::kNone
                           ? std::min(spec.kv_lora_rank, pagejit_shared::kDsMlaGroup)
                           : rope_elements;
  return MlaCacheWriteConfig{
      .spec = spec,
      .target = target,
      .constants = {.dtype = element_of(spec.dtype),
                    .kv = spec.format == MlaFormat::kPlain ? element_of(spec.dtype)
                                                           : pagejit_shared::Element::kFloat8E4m3,
                    .cos_sin = element_of(spec.cos_sin_dtype),
                    .format = static_cast<pagejit_shared::MlaFormat>(spec.format),
                    .rope = static_cast<pagejit_shared::RopeStyle>(spec.rope),
                    .kv_lora_rank = spec.kv_lora_rank,
                    .rotary_dim = spec.qk_rope_head_dim,
                    .block_size = spec.block_size,
                    .vector_elements = vector,
                    .threads_per_row = threads_per_row(elements, vector),
                    .num_threads = kThreads,
                    .grouped = spec.grouped,
                    .has_float8_convert = has_float8_convert(target),
                    .debug = spec.debug}};
}

EntryText entry_text(const MlaCacheWriteConfig& config) {
  const pagejit_shared::MlaCacheWriteConfig& c = config.constants;
  const auto number = [](int value) { return std::to_string(value); };
  return {.file = "mla_cache_write/mla_cache_write.cu.tmpl",
          .kernel_name = kernel_name(config.spec),
          .banner = banner("Write of a latent cache", canonical_text(config.spec)) + "\n// " +
                    number(c.vector_elements) + " elements per access; " +
                    number(c.threads_per_row) + " threads per part; " +
                    number(pagejit_shared::rows_per_cta(c)) + " parts per CTA.",
          .values = {{"dtype", element_name(c.dtype)},
                     {"kv", element_name(c.kv)},
                     {"cos_sin", element_name(c.cos_sin)},
                     {"format", format_constant(c.format)},
                     {"rope", rope_constant(c.rope)},
                     {"kv_lora_rank", number(c.kv_lora_rank)},
                     {"rotary_dim", number(c.rotary_dim)},
                     {"block_size", number(c.block_size)},
                     {"vector_elements", number(c.vector_elements)},
                     {"threads_per_row", number(c.threads_per_row)},
                     {"num_threads", number(c.num_threads)},
                     {"grouped", bool_text(c.grouped)},
                     {"has_float8_convert", bool_text(c.has_float8_convert)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", kernel_name(config.spec)}},
          .switches = {{"PAGEJIT_PDL", config.spec.pdl}},
          .pdl = config.spec.pdl};
}

}  // namespace pagejit
