#include "generator/tile_text.h"

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
