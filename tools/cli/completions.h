// Completions of the command line for bash, zsh and fish: subcommands, flags, and files or folders
// where a flag takes one. Thread-safety: pure functions.
#pragma once

#include <string>

#include "tools/cli/command_tree.h"

namespace pagejit::cli {

std::string bash_completion(const CommandTree& command);
std::string zsh_completion(const CommandTree& command);
std::string fish_completion(const CommandTree& command);

}  // namespace pagejit::cli
