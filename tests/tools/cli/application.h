// The application of the pagejit command with all of its subcommands, for tests that parse words.
// No command of it ever runs. Thread-safety: each object has its own.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <sstream>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/word_checks.h"

namespace pagejit::cli {

using Words = std::vector<std::string>;

// Parsing throws CLI::Success where a command would have run, CLI::ParseError where it would not.
class Application {
 public:
  Application() {
    add_all_commands(app_, context_);
    // Once all is parsed and found legal, before any command begins.
    app_.parse_complete_callback([] { throw CLI::Success(); });
  }
  CLI::App& app() { return app_; }

  // "bundle ls": the commands that a user sees, and those without subcommands of them.
  std::vector<const CLI::App*> all() const { return list(app_, false); }
  std::vector<const CLI::App*> leaves() const { return list(app_, true); }

  static std::string name_of(const CLI::App& command) {
    return full_name(command).substr(std::string("pagejit ").size());
  }

 private:
  static std::vector<const CLI::App*> list(const CLI::App& app, bool only_leaves) {
    std::vector<const CLI::App*> commands;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_group().empty()) continue;
      const auto below = list(*sub, only_leaves);
      if (!only_leaves || below.empty()) commands.push_back(sub);
      commands.insert(commands.end(), below.begin(), below.end());
    }
    return commands;
  }

  std::ostringstream out_, err_;
  const std::atomic<bool> interrupted_{false};
  CommandContext context_{.out = out_, .err = err_, .interrupted = interrupted_};
  CLI::App app_{"", "pagejit"};
};

inline Words split(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace pagejit::cli
