// The planner: spec and target -> configuration. Pure; the same inputs give the same result on
// every machine. Thread-safety: free functions without state.
#pragma once

#include <string>
#include <vector>

#include "generator/config.h"

namespace pagejit {

Result<KernelConfig> plan(const KernelSpec& spec, const Target& target);

// What the matrix products of one KV token take a CTA that has an SM to itself, by the model that
// the candidates are ranked with; 0 where the target is not known.
double product_ns_per_token(const KernelConfig& config);

// One candidate the planner looked at, best first; the first is the choice.
struct PlanCandidate {
  KernelConfig config;
  bool fits = false;
  // By the model: the time over that of what should be the limit (the memory, where queries are
  // many the products), at least 1.
  double predicted_slowdown = 1;
  // Why it lost, with the number that lost ("shared memory 139264 B per CTA > 101376 B"); empty for
  // the choice.
  std::string reason;
};

struct PlanExplanation {
  std::vector<PlanCandidate> candidates;
  std::string to_string() const;  // a table for people
};

Result<PlanExplanation> explain(const KernelSpec& spec, const Target& target);

}  // namespace pagejit
