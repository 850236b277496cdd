// Names of files and of what they hold, as text. Thread-safety: a free function.
#pragma once

#include <string>
#include <string_view>

namespace pagejit::inspect {

// As models::printable(), which shows only the beginning, but all of it.
std::string name_text(std::string_view name);

}  // namespace pagejit::inspect
