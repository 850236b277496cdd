// The generator's functions for a spec or a configuration of any family: where a family is added.
// Pure. Thread-safety: free functions without state.
#pragma once

#include <string>

#include "generator/config.h"

namespace pagejit {

// validate(), canonical_text() and plan() of the spec's family.
Status validate_any(const AnySpec& spec);
std::string text_of(const AnySpec& spec);
Result<AnyConfig> plan_any(const AnySpec& spec, const Target& target);

// Of the configuration, whatever its family.
std::string spec_text(const AnyConfig& config);
const Target& target_of(const AnyConfig& config);
int threads_per_cta(const AnyConfig& config);
int shared_bytes(const AnyConfig& config);
// Whether the kernel is one for programmatic dependent launch.
bool uses_pdl(const AnyConfig& config);  // dynamic, per CTA

}  // namespace pagejit
