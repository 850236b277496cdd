// An inspection for programs. Thread-safety: a free function.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/inspect/inspection.h"

namespace pagejit::inspect {

// One object; numbers that are not known are null. Times in microseconds, sizes in bytes.
nlohmann::json to_json(const Inspection& inspection);

}  // namespace pagejit::inspect
