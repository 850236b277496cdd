// An inspection as one page: tables, a roofline as SVG, the source beside its machine code. The
// page needs nothing but itself, by day or in the dark, and is also well-formed XML. Thread-safety:
// free functions.
#pragma once

#include <string>

#include "tools/inspect/inspection.h"

namespace pagejit::inspect {

std::string to_html(const Inspection& inspection);

// The roofline alone; "" where there is none.
std::string roofline_svg(const Inspection& inspection);

}  // namespace pagejit::inspect
