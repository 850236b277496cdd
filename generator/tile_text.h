// A tile configuration as a line of text, and back: how a choice that was measured elsewhere is
// named (`pagejit tune`). Only what the planner weighs has a name, so that no text, whatever it
// says, gives a kernel that the planner would not call legal. Pure. Thread-safety: free functions
// without state.
#pragma once

#include <string>
#include <string_view>

#include "generator/config.h"

namespace pagejit {

// "token_groups=4 row_warps=1 row_tiles=1 group_tokens=16 num_stages=3 q_in_registers=1
// min_ctas_per_sm=2": what tells the planner's candidates for one spec and target apart.
std::string tile_text(const AttentionConfig& c);

// The same for people: "4 x 1 warps, 64 tokens, 1 row tiles, 3 stages, q in registers, 2 CTAs/SM".
std::string describe_tile(const AttentionConfig& c);

// The candidate for `spec` and `target` that has this text and can run. kNotFound where there is
// none, else as plan().
Result<KernelConfig> plan_tile(const KernelSpec& spec, const Target& target, std::string_view tile);

}  // namespace pagejit
