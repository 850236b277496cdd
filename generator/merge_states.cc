#include "generator/merge_states.h"

#include <algorithm>

#include "generator/arch.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

// As vLLM's and FlashInfer's merges: enough rows per CTA for any head size, many CTAs per SM.
constexpr int kThreads = 128;
constexpr int kMaxHeadSize = 4096;

std::string kernel_name(const MergeStatesSpec& spec) {
  std::string name = "pagejit_merge_states_";
  name += data_type_name(spec.in_dtype);
  name += "_" + std::string(data_type_name(spec.out_dtype));
  name += "_d" + std::to_string(spec.head_size);
  if (spec.listed) name += "_listed";
  if (spec.pdl) name += "_pdl";
  return name;
}

}  // namespace

template <>
Status validate(const MergeStatesSpec& spec) {
  if (Status s = check_wide_type("in_dtype", spec.in_dtype); !s) return s;
  if (Status s = check_wide_type("out_dtype", spec.out_dtype); !s) return s;
  return check_range("head_size", spec.head_size, 1, kMaxHeadSize);
}

template <>
Status supports(const MergeStatesSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const MergeStatesSpec& spec) {
  return "merge_states" + text_field("in", data_type_name(spec.in_dtype)) +
         text_field("out", data_type_name(spec.out_dtype)) +
         text_field("head_size", spec.head_size) + text_switch("listed", spec.listed) +
         text_switch("pdl", spec.pdl);
}

Result<MergeStatesConfig> plan(const MergeStatesSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  if (Status s = check_pdl(spec.pdl, target); !s) return s;
  const int widest = std::max(data_type_bytes(spec.in_dtype), data_type_bytes(spec.out_dtype));
  return MergeStatesConfig{
      .spec = spec,
      .target = target,
      .constants = {.in = element_of(spec.in_dtype),
                    .out = element_of(spec.out_dtype),
                    .is_listed = spec.listed,
                    .head_size = spec.head_size,
                    .vector_elements = pagejit_shared::vector_elements(widest, spec.head_size),
                    .num_threads = kThreads}};
}

EntryText entry_text(const MergeStatesConfig& config) {
  const pagejit_shared::MergeStatesConfig& c = config.constants;
  return {.file = "merge_states/merge_states.cu.tmpl",
          .kernel_name = kernel_name(config.spec),
          .banner = banner("Merge of partial attention results", canonical_text(config.spec)) +
                    "\n// " + std::to_string(c.vector_elements) + " elements per thread; " +
                    std::to_string(pagejit_shared::rows_per_cta(c)) + " rows per CTA.",
          .values = {{"in", element_name(c.in)},
                     {"out", element_name(c.out)},
                     {"is_listed", bool_text(c.is_listed)},
                     {"head_size", std::to_string(c.head_size)},
                     {"vector_elements", std::to_string(c.vector_elements)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"kernel_name", kernel_name(config.spec)}},
          .switches = {{"PAGEJIT_PDL", config.spec.pdl}},
          .pdl = config.spec.pdl};
}

}  // namespace pagejit
