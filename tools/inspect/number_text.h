// Numbers as people read them. Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>

namespace pagejit::inspect {

std::string with_commas(int64_t value);  // "1,234,567"
std::string significant(double value);   // four digits, and all before the point: "1.234", "4,567"
std::string percent(double fraction);    // "18.8 %"

}  // namespace pagejit::inspect
