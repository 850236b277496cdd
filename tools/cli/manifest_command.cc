#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/text_table.h"
#include "tools/cli/word_checks.h"
#include "tools/cli/work_flags.h"
#include "tools/manifest/kernel_list.h"
#include "tools/manifest/manifest.h"

namespace pagejit::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHang = 4;  // of what a terminal has no room for; more than the sign of a difference

// File names may be any bytes.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct ManifestFlags {
  std::string file;
  std::string other;
  std::vector<std::string> archs;
  bool json = false;
};

// Nothing after a failure, which the context has then.
std::optional<manifest::Manifest> load(const std::string& path, const ManifestFlags& flags,
                                       CommandContext& context) {
  const Result<std::vector<Target>> targets = parse_targets(flags.archs);
  if (!targets) {
    context.fail(targets.status());
    return std::nullopt;
  }
  Result<manifest::Manifest> read = manifest::load_manifest(path, *targets);
  if (!read) {
    context.fail(read.status());
    return std::nullopt;
  }
  for (const std::string& sentence : read->unsupported) {
    context.fail(Status(StatusCode::kUnsupported, sentence), ExitCode::kUnsupportedLayers);
  }
  return std::move(read).value();
}

std::string text_of_kernel(const manifest::ListedKernel& kernel, bool json) {
  return json ? manifest::json_of(kernel) : manifest::line_of(kernel);
}

void expand(const ManifestFlags& flags, CommandContext& context) {
  const auto read = load(flags.file, flags, context);
  if (!read) return;
  for (const manifest::ListedKernel& kernel : read->kernels) {
    const std::string line = text_of_kernel(kernel, flags.json) + "\n";
    context.out << (flags.json ? line : fitted(line, context.out_terminal, kHang));
  }
}

void lint(const ManifestFlags& flags, CommandContext& context) {
  const auto read = load(flags.file, flags, context);
  if (!read) return;
  if (flags.json) {
    context.out << dump({{"manifest", flags.file}, {"kernels", read->kernels.size()}}) << "\n";
    return;
  }
  context.out << fitted(flags.file + ": " + format_kernels(read->kernels.size()) + "\n",
                        context.out_terminal);
}

void print_difference(char sign, const manifest::ListedKernel& kernel, const ManifestFlags& flags,
                      CommandContext& context) {
  if (!flags.json) {
    const Style style = sign == '-' ? Style::kBad : Style::kGood;
    const std::string line = fitted(sign + (" " + line_of(kernel)), context.out_terminal, kHang);
    context.out << styled(line, style, context.out_terminal) << "\n";
    return;
  }
  Json line = Json::parse(manifest::json_of(kernel), nullptr, /*allow_exceptions=*/false);
  line["only_in"] = sign == '-' ? flags.file : flags.other;
  context.out << dump(line) << "\n";
}

void diff(const ManifestFlags& flags, CommandContext& context) {
  const auto first = load(flags.file, flags, context);
  const auto second = load(flags.other, flags, context);
  if (!first || !second) return;
  const manifest::ListDifference apart = manifest::difference(first->kernels, second->kernels);
  for (const auto& kernel : apart.only_first) print_difference('-', kernel, flags, context);
  for (const auto& kernel : apart.only_second) print_difference('+', kernel, flags, context);
}

}  // namespace

void add_manifest_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("manifest", "Lists of kernels to make ahead of deployment");
  const auto flags = std::make_shared<ManifestFlags>();
  const auto add = [&](const char* name, const char* help, const char* examples, auto run) {
    CLI::App* action = command->add_subcommand(name, help);
    action->add_option("file", flags->file, "The manifest")->required()->type_name("FILE");
    action
        ->add_option("--arch,-a", flags->archs,
                     "Targets of kernels that the manifest gives none, separated by commas")
        ->type_name("ARCH")
        ->check(target_words());
    action->footer(std::string("Examples:\n") + examples);
    action->callback([flags, &context, run] { run(*flags, context); });
    return action;
  };
  add("expand", "Print the kernels that a manifest comes to, sorted, each once",
      "  pagejit manifest expand fleet.json\n"
      "  pagejit manifest expand fleet.json --arch sm_90a --json",
      expand)
      ->add_flag("--json", flags->json, "One JSON object per line, as a trace");
  CLI::App* action =
      add("lint", "Say whether a manifest is legal, and how many kernels it comes to",
          "  pagejit manifest lint fleet.json\n"
          "  pagejit manifest lint fleet.json --json",
          lint);
  action->add_flag("--json", flags->json, "One JSON object");
  action = add("diff", "Print the kernels that only one of two manifests comes to",
               "  pagejit manifest diff old.json new.json\n"
               "  pagejit manifest diff old.json new.json --arch sm_90a --json",
               diff);
  action->add_option("other", flags->other, "Another manifest")->required()->type_name("FILE");
  action->add_flag("--json", flags->json, "One JSON object per kernel");
  command->require_subcommand(1);
  command->footer(std::string("Examples:\n"
                              "  pagejit manifest lint fleet.json\n"
                              "  pagejit manifest expand fleet.json --json\n"
                              "  pagejit manifest diff old.json new.json\n\n") +
                  kExitCodeHelp);
}

}  // namespace pagejit::cli
