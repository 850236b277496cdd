// A pairwise cover of the legal attention specs: each two values of two fields that a legal spec
// has together, within spec_space.h's values, are together in one of the cover. Thread-safety: free
// functions without state.
#pragma once

#include <cstddef>
#include <vector>

#include "pagejit/spec.h"
#include "pagejit/target.h"

namespace pagejit {

struct SpecCover {
  std::vector<KernelSpec> specs;
  size_t num_pairs = 0;  // of values, each in one of the specs
};

// Of the specs that can be planned for the target. Pairs are looked for by chance, 2,000 times
// each around a plain spec, so one that is legal with few others may be missed; the same on each
// run.
SpecCover pairwise_cover(const Target& target);

// How many pairs of values the spec has that the cover has not.
size_t pairs_not_covered(const SpecCover& cover, const KernelSpec& spec);

}  // namespace pagejit
