// The PAGEJIT_* variables one by one, for programs that go on where some are malformed; others take
// EngineOptions::from_environment(). Thread-safety: as getenv().
#pragma once

#include <vector>

#include "pagejit/options.h"

namespace pagejit {

// Sets the fields of all variables that are set and legal. Answers kInvalidArgument for each that
// is malformed, in the order of the fields.
std::vector<Status> read_environment(EngineOptions* options);

}  // namespace pagejit
