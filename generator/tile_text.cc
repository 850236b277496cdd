#include "generator/tile_text.h"

#include <cstdio>

#include "generator/planner.h"

namespace pagejit {

std::string tile_text(const AttentionConfig& c) {
  const auto field = [](const char* name, int value) {
    return std::string(name) + "=" + std::to_string(value);
  };
  return field("token_groups", c.token_groups) + field(" row_warps", c.row_warps) +
         field(" row_tiles", c.row_tiles) + field(" group_tokens", c.group_tokens) +
         field(" num_stages", c.num_stages) + field(" q_in_registers", c.q_in_registers ? 1 : 0) +
         field(" min_ctas_per_sm", c.min_ctas_per_sm);
}

std::string describe_tile(const AttentionConfig& c) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%d x %d warps, %d tokens%s, %d row tiles, %d stages, q in %s, %d CTAs/SM",
                c.token_groups, c.row_warps, c.token_groups * c.group_tokens,
                pagejit_shared::kv_copy_bytes(c) == 16  ? ""
                : pagejit_shared::kv_copy_bytes(c) == 8 ? " by 8-byte copies"
                                                        : " by 4-byte copies",
                c.row_tiles, c.num_stages, c.q_in_registers ? "registers" : "shared memory",
                c.min_ctas_per_sm);
  return text;
}

Result<KernelConfig> plan_tile(const KernelSpec& spec, const Target& target,
                               std::string_view tile) {
  const Result<PlanExplanation> explanation = explain(spec, target);
  if (!explanation) return explanation.status();
  for (const PlanCandidate& candidate : explanation->candidates) {
    if (candidate.fits && tile_text(candidate.config.attention) == tile) return candidate.config;
  }
  return Status(StatusCode::kNotFound, "no tile configuration of " + canonical_text(spec) +
                                           " that fits " + target.to_string() + " is " +
                                           std::string(tile));
}

}  // namespace pagejit
