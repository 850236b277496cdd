// The command's version. Thread-safety: a free function.
#pragma once

#include <string>

namespace pagejit::cli {

// "pagejit 0.1.0".
std::string version_text();

}  // namespace pagejit::cli
