// `pagejit generate`: the manual page and the completions that are installed with the command. Not
// shown by --help: the build calls it.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/commands.h"
#include "tools/cli/completions.h"
#include "tools/cli/manual_page.h"
#include "tools/cli/version.h"

namespace pagejit::cli {

void add_generate_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("generate", "Print the manual page, or a shell's completion");
  command->group("");  // hidden
  const auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "man, bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  command->callback([what, &app, &context] {
    const CommandTree tree = command_tree(app);
    if (*what == "man") context.out << manual_page(tree, version_text());
    if (*what == "bash") context.out << bash_completion(tree);
    if (*what == "zsh") context.out << zsh_completion(tree);
    if (*what == "fish") context.out << fish_completion(tree);
  });
}

}  // namespace pagejit::cli
