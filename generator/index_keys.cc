// Writing and gathering the keys of an indexer.
#include <algorithm>

#include "generator/arch.h"
#include "generator/indexer.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

constexpr int kThreads = 128;

// The fields that the specs of blocks of keys share.
template <class Spec>
Status check_block(const Spec& spec) {
  if (Status s = check_range("head_size", spec.head_size, 4, 4096); !s) return s;
  if (spec.quant_block_size < 4 || spec.quant_block_size % 4 != 0 ||
      spec.head_size % spec.quant_block_size != 0) {
    return invalid_spec("quant_block_size " + std::to_string(spec.quant_block_size) +
                        ": must be a multiple of 4 that divides head_size (" +
                        std::to_string(spec.head_size) + ")");
  }
  return check_range("block_size", spec.block_size, 1, kMaxBlockSize);
}

template <class Spec>
std::string block_text(const Spec& spec) {
  return text_field("head_size", spec.head_size) +
         text_field("quant_block_size", spec.quant_block_size) +
         text_field("block_size", spec.block_size);
}

template <class Spec>
std::string block_name(const Spec& spec) {
  return "_d" + std::to_string(spec.head_size) + "_q" + std::to_string(spec.quant_block_size) +
         "_b" + std::to_string(spec.block_size);
}

// The most elements, a power of two and at most `most`, that divide a row of codes and a block.
template <class Spec>
int vector_of(const Spec& spec, int row, int most) {
  const int64_t block_bytes =
      index_page_bytes(spec.block_size, spec.head_size, spec.quant_block_size);
  int vector = most;
  while (row % vector != 0 || block_bytes % vector != 0) vector /= 2;
  return vector;
}

int threads_for(int elements, int vector) {
  int threads = 1;
  while (threads < 32 && threads * vector < elements) threads *= 2;
  return threads;
}

std::string write_name(const IndexKeyWriteSpec& spec) {
  return "pagejit_index_key_write_" + std::string(data_type_name(spec.dtype)) + block_name(spec) +
         (spec.power_of_two_scale ? "_p2" : "") + row_alignment_suffix(spec.row_alignment) +
         debug_suffix(spec.debug);
}

std::string gather_name(const IndexKeyGatherSpec& spec) {
  return "pagejit_index_key_gather" + block_name(spec) + row_alignment_suffix(spec.row_alignment) +
         debug_suffix(spec.debug);
}

}  // namespace

template <>
Status validate(const IndexKeyWriteSpec& spec) {
  if (Status s = check_wide_type("dtype", spec.dtype); !s) return s;
  if (Status s = check_block(spec); !s) return s;
  return check_alignment("row_alignment", spec.row_alignment, data_type_bytes(spec.dtype));
}

template <>
Status validate(const IndexKeyGatherSpec& spec) {
  if (Status s = check_block(spec); !s) return s;
  return check_alignment("row_alignment", spec.row_alignment, 4);
}

template <>
Status supports(const IndexKeyWriteSpec& spec, const Target& target) {
  return plan(spec, target).status();
}
template <>
Status supports(const IndexKeyGatherSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const IndexKeyWriteSpec& spec) {
  return "index_key_write" + text_field("dtype", data_type_name(spec.dtype)) + block_text(spec) +
         text_switch("power_of_two_scale", spec.power_of_two_scale) +
         row_alignment_text(spec.row_alignment) + text_switch("debug", spec.debug);
}
template <>
std::string canonical_text(const IndexKeyGatherSpec& spec) {
  return "index_key_gather" + block_text(spec) + row_alignment_text(spec.row_alignment) +
         text_switch("debug", spec.debug);
}

Result<IndexKeyWriteConfig> plan(const IndexKeyWriteSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  const int vector =
      vector_of(spec, spec.quant_block_size, spec.row_alignment / data_type_bytes(spec.dtype));
  return IndexKeyWriteConfig{
      .spec = spec,
      .target = target,
      .constants = {.dtype = element_of(spec.dtype),
                    .head_size = spec.head_size,
                    .quant_block_size = spec.quant_block_size,
                    .block_size = spec.block_size,
                    .is_power_of_two_scale = spec.power_of_two_scale,
                    .vector_elements = vector,
                    .threads_per_row = threads_for(spec.quant_block_size, vector),
                    .num_threads = kThreads,
                    .has_float8_convert = has_float8_convert(target),
                    .debug = spec.debug}};
}

Result<IndexKeyGatherConfig> plan(const IndexKeyGatherSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  const int vector = vector_of(spec, spec.head_size, spec.row_alignment);
  return IndexKeyGatherConfig{
      .spec = spec,
      .target = target,
      .constants = {.head_size = spec.head_size,
                    .quant_block_size = spec.quant_block_size,
                    .block_size = spec.block_size,
                    .vector_bytes = vector,
                    .threads_per_token = threads_for(spec.head_size, vector),
                    .num_threads = kThreads,
                    .debug = spec.debug}};
}

EntryText entry_text(const IndexKeyWriteConfig& config) {
  const pagejit_shared::IndexKeyWriteConfig& c = config.constants;
  return {.file = "indexer/write_keys.cu.tmpl",
          .kernel_name = write_name(config.spec),
          .banner = banner("Writing index keys", canonical_text(config.spec)),
          .values = {{"dtype", element_name(c.dtype)},
                     {"head_size", std::to_string(c.head_size)},
                     {"quant_block_size", std::to_string(c.quant_block_size)},
                     {"block_size", std::to_string(c.block_size)},
                     {"is_power_of_two_scale", bool_text(c.is_power_of_two_scale)},
                     {"vector_elements", std::to_string(c.vector_elements)},
                     {"threads_per_row", std::to_string(c.threads_per_row)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"has_float8_convert", bool_text(c.has_float8_convert)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", write_name(config.spec)}}};
}

EntryText entry_text(const IndexKeyGatherConfig& config) {
  const pagejit_shared::IndexKeyGatherConfig& c = config.constants;
  return {.file = "indexer/gather_keys.cu.tmpl",
          .kernel_name = gather_name(config.spec),
          .banner = banner("Gathering index keys", canonical_text(config.spec)),
          .values = {{"head_size", std::to_string(c.head_size)},
                     {"quant_block_size", std::to_string(c.quant_block_size)},
                     {"block_size", std::to_string(c.block_size)},
                     {"vector_bytes", std::to_string(c.vector_bytes)},
                     {"threads_per_token", std::to_string(c.threads_per_token)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", gather_name(config.spec)}}};
}

}  // namespace pagejit
