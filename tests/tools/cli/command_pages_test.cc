// What the manual page and the completions say of the flags of the application itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli/application.h"
#include "tools/cli/command_tree.h"
#include "tools/cli/completions.h"
#include "tools/cli/manual_page.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;

// The flags of all commands, as the page and the completions have them.
std::vector<CommandFlag> flags_of(const CommandTree& command) {
  std::vector<CommandFlag> flags = command.flags;
  for (const CommandTree& below : command.commands) {
    const std::vector<CommandFlag> more = flags_of(below);
    flags.insert(flags.end(), more.begin(), more.end());
  }
  return flags;
}

TEST(CommandPagesTest, PlaceholdersAreWordsWithoutTheChecksOfValues) {
  Application application;
  for (const CommandFlag& flag : flags_of(command_tree(application.app()))) {
    EXPECT_EQ(flag.placeholder.find(':'), std::string::npos) << flag.placeholder;
  }
  for (const CLI::App* command : application.all()) {
    for (const CLI::Option* option : command->get_options()) {
      EXPECT_EQ(option->get_type_name().find(':'), std::string::npos) << option->get_name();
    }
  }
  CLI::App app("Checks its values", "checked");
  int number = 0;
  app.add_option("--number", number, "Of a range")->check(CLI::Range(0, 8))->type_name("N");
  const CommandTree tree = command_tree(app);
  EXPECT_EQ(tree.flags.back().placeholder, "N");
  EXPECT_THAT(zsh_completion(tree), HasSubstr("'Of a range'']'':N: '"));
  EXPECT_THAT(manual_page(tree, "1"), HasSubstr("\\fB\\-\\-number\\fR \\fIN\\fR\n"));
}

TEST(CommandPagesTest, AFlagOfTwoFilesHasTwoInThePageAndTheCompletions) {
  Application application;
  const CommandTree tree = command_tree(application.app());
  const std::string page = manual_page(tree, "1");
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-compare\\fR \\fIFILE\\fR \\fIFILE\\fR\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-svg\\fR \\fIFILE\\fR\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-manifest\\fR \\fIFILE\\fR ...\n"));
  const std::string zsh = zsh_completion(tree);
  EXPECT_THAT(zsh, HasSubstr("then write the comparison'']'':FILE:_files'':FILE:_files' \\\n"));
  EXPECT_THAT(zsh, HasSubstr("with their goals, to FILE'']'':FILE:_files' \\\n"));
  EXPECT_THAT(bash_completion(tree), HasSubstr("      pairs='--compare'\n"));
  EXPECT_THAT(fish_completion(tree), HasSubstr("(commandline -opc)[-2] --compare' -F\n"));
}

}  // namespace
}  // namespace pagejit::cli
