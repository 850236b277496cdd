// The target ladder: which targets serve a GPU, best first. Pure; whether a target can be compiled,
// or has a stored entry, is the caller's question. Thread-safety: free functions without state.
#pragma once

#include <vector>

#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// The targets whose cubins run on a GPU of compute capability `sm` (major * 10 + minor), in the
// order of preference:
//   1. the architecture-specific target (90a), from 9.0 on
//   2. the family targets (103f, 100f), from 10.0 on
//   3. the plain targets of the same major, the highest minor not above the GPU's first (89, 88,
//   86, 80)
// Jetson-class GPUs (87, 101, 110) take only their own number, and no other GPU takes theirs.
// Targets of numbers that no compiler knows are in the list; check_target() rules them out.
// kUnsupported below 7.5: the kernels need ldmatrix, movmatrix and mma.m16n8k8.
Result<std::vector<Target>> target_ladder(int sm);

// The targets that are compiled to PTX for such a GPU where no cubin does, best first: the highest
// plain one not above it that this library knows, then older ones. Those of Jetson-class GPUs only
// on themselves. Empty below 7.5.
std::vector<Target> ptx_ladder(int sm);

// Whether an image for `target` runs on a GPU of compute capability `sm`. Never true for the target
// "host".
bool runs_on(const Target& target, int sm);

}  // namespace pagejit
