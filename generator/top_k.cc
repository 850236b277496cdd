// The greatest values of rows.
#include "generator/arch.h"
#include "generator/indexer.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

// 16 warps hide the latency of a row's loads and leave room for a second CTA; a thread sums four
// counts.
constexpr int kThreads = 512;

std::string kernel_name(const TopKSpec& spec) {
  return "pagejit_top_k" + row_alignment_suffix(spec.row_alignment) + debug_suffix(spec.debug);
}

}  // namespace

template <>
Status validate(const TopKSpec& spec) {
  return check_alignment("row_alignment", spec.row_alignment, 4);
}

template <>
Status supports(const TopKSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const TopKSpec& spec) {
  return "top_k" + row_alignment_text(spec.row_alignment) + text_switch("debug", spec.debug);
}

Result<TopKConfig> plan(const TopKSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  if (Result<Arch> arch = arch_of(target); !arch) return arch.status();
  return TopKConfig{.spec = spec,
                    .target = target,
                    .constants = {.vector_elements = spec.row_alignment / 4,
                                  .num_threads = kThreads,
                                  .shared_bytes = sizeof(pagejit_shared::TopKShared),
                                  .debug = spec.debug}};
}

EntryText entry_text(const TopKConfig& config) {
  const pagejit_shared::TopKConfig& c = config.constants;
  return {.file = "indexer/top_k.cu.tmpl",
          .kernel_name = kernel_name(config.spec),
          .banner = banner("The greatest values of rows", canonical_text(config.spec)),
          .values = {{"vector_elements", std::to_string(c.vector_elements)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"shared_bytes", std::to_string(c.shared_bytes)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", kernel_name(config.spec)}}};
}

}  // namespace pagejit
