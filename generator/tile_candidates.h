// The tile configurations of the attention kernel that the planner looks at. Pure. Thread-safety:
// free functions without state.
#pragma once

#include <vector>

#include "generator/arch.h"
#include "generator/config.h"

namespace pagejit {

// With what the spec says filled in, and the stages that keep enough bytes in flight or fit; always
// in the same order. Whether one can run is the planner's question.
std::vector<AttentionConfig> tile_candidates(const KernelSpec& spec, const Arch& arch);

// Rows that a tile should have where queries are few or share their keys: fewer mean that keys are
// read again.
int rows_wanted(const KernelSpec& spec);

// With two stages a warp that is late by one tile has nothing left in flight.
bool has_two_stages(const AttentionConfig& c);

}  // namespace pagejit
