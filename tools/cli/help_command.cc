// `pagejit help COMMAND`: what `pagejit COMMAND --help` prints.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/word_checks.h"

namespace pagejit::cli {
namespace {

void print_help(const CLI::App& app, const std::vector<std::string>& words,
                CommandContext& context) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const auto named =
        command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (named.empty()) {
      return context.fail(
          Status(StatusCode::kInvalidArgument, "help: " + unknown_subcommand(*command, word)));
    }
    command = named.front();
  }
  // Not App::help(), which goes to the subcommand that was named: this one.
  context.out << command->get_formatter()->make_help(command, full_name(*command),
                                                     CLI::AppFormatMode::Normal);
}

}  // namespace

void add_help_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("help", "Print the help of a command");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("COMMAND", *words, "The command; without one, the list of all")
      ->type_name("COMMAND");
  command->footer(
      "Examples:\n"
      "  pagejit help\n"
      "  pagejit help inspect\n"
      "  pagejit help cache ls");
  command->callback([words, &app, &context] { print_help(app, *words, context); });
}

}  // namespace pagejit::cli
