// `pagejit version`: what this program is.
#include <CLI/CLI.hpp>

#include "tools/cli/commands.h"
#include "tools/cli/version.h"

namespace pagejit::cli {

void add_version_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer(
      "Examples:\n"
      "  pagejit version");
  command->callback([&context] { context.out << version_text() << "\n"; });
}

}  // namespace pagejit::cli
