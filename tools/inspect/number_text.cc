#include "tools/inspect/number_text.h"

#include <cmath>
#include <cstdio>

namespace pagejit::inspect {

std::string with_commas(int64_t value) {
  std::string text = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = text.size(); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string significant(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e15) return with_commas(std::llround(value));
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", fraction * 100);
  return text;
}

}  // namespace pagejit::inspect
