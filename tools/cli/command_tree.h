// CommandTree: the subcommands and flags of the command as plain data, read from the parser's own
// tables, so that the manual page and the completions made of it are never out of date.
// Thread-safety: plain values.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pagejit::cli {

struct CommandFlag {
  enum class Value : char { kNone, kText, kFile, kFolder };  // what follows it

  std::vector<std::string> names;  // "-o", "--output"; of a positional argument its one name
  Value value = Value::kNone;
  std::string placeholder;  // "FILE"; empty where nothing follows
  int num_values = 0;       // that must follow it; of a positional argument how many it is
  bool is_positional = false;
  bool is_required = false;
  bool repeats = false;
  std::string help;
};

struct CommandTree {
  std::string name;
  std::string help;
  std::string footer;              // examples; empty where it is the parent's
  std::vector<CommandFlag> flags;  // in the order of --help; of a parent only those it takes over
  std::vector<CommandTree> commands;
};

// Hidden subcommands and flags are left out.
CommandTree command_tree(const CLI::App& app);

}  // namespace pagejit::cli
