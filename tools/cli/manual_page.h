// manual_page: pagejit(1) in the language of man(7). Thread-safety: a pure function.
#pragma once

#include <string>

#include "tools/cli/command_tree.h"

namespace pagejit::cli {

// `version` is shown in the footer. The page tells no date, so that every build makes the same
// bytes.
std::string manual_page(const CommandTree& command, const std::string& version);

}  // namespace pagejit::cli
