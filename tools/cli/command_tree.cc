#include "tools/cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <string_view>

namespace pagejit::cli {
namespace {

CommandFlag::Value value_of(std::string_view placeholder) {
  using Value = CommandFlag::Value;
  if (placeholder.empty()) return Value::kNone;
  if (placeholder == "DIR") return Value::kFolder;
  // A driver is "cuda", "emulator" or a file.
  for (const std::string_view file : {"FILE", "PATH", "BUNDLE", "DRIVER"}) {
    if (placeholder.starts_with(file)) return Value::kFile;
  }
  return Value::kText;
}

// "N" of "N:INT in [0 - 8]": behind the name of a type stand the checks of its values.
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

CommandFlag describe(const CLI::Option& option) {
  CommandFlag flag;
  flag.is_positional = option.get_positional() && !option.nonpositional();
  if (flag.is_positional) {
    flag.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) flag.placeholder = type_of(option);
  flag.num_values = option.get_items_expected_min();
  flag.value = value_of(flag.placeholder);
  flag.is_required = option.get_required();
  flag.repeats = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  flag.help = option.get_description();
  return flag;
}

void add_flags(const CLI::App& app, bool with_help, CommandTree* tree) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (!with_help && option == app.get_help_ptr()) continue;
    tree->flags.push_back(describe(*option));
  }
}

CommandTree describe(const CLI::App& app, const CLI::App* parent) {
  CommandTree tree;
  tree.name = app.get_name();
  tree.help = app.get_description();
  if (parent == nullptr || app.get_footer() != parent->get_footer()) {
    tree.footer = app.get_footer();
  }
  add_flags(app, /*with_help=*/true, &tree);
  if (parent != nullptr && app.get_fallthrough()) add_flags(*parent, /*with_help=*/false, &tree);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name().empty() || command->get_group().empty()) continue;
    tree.commands.push_back(describe(*command, &app));
  }
  return tree;
}

}  // namespace

CommandTree command_tree(const CLI::App& app) { return describe(app, nullptr); }

}  // namespace pagejit::cli
