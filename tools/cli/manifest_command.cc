#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/work_flags.h"
#include "tools/manifest/kernel_list.h"
#include "tools/manifest/manifest.h"

namespace pagejit::cli {
namespace {

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
    context.out << text_of_kernel(kernel, flags.json) << "\n";
  }
}

void lint(const ManifestFlags& flags, CommandContext& context) {
  const auto read = load(flags.file, flags, context);
  if (!read) return;
  context.out << flags.file << ": " << read->kernels.size()
              << (read->kernels.size() == 1 ? " kernel" : " kernels") << "\n";
}

void diff(const ManifestFlags& flags, CommandContext& context) {
  const auto first = load(flags.file, flags, context);
  const auto second = load(flags.other, flags, context);
  if (!first || !second) return;
  const manifest::ListDifference apart = manifest::difference(first->kernels, second->kernels);
  for (const auto& kernel : apart.only_first) context.out << "- " << line_of(kernel) << "\n";
  for (const auto& kernel : apart.only_second) context.out << "+ " << line_of(kernel) << "\n";
}

}  // namespace

void add_manifest_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("manifest", "Lists of kernels to make ahead of deployment");
  const auto flags = std::make_shared<ManifestFlags>();
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* action = command->add_subcommand(name, help);
    action->add_option("file", flags->file, "The manifest")->required()->type_name("FILE");
    action
        ->add_option("--arch,-a", flags->archs,
                     "Targets of kernels that the manifest gives none, separated by commas")
        ->type_name("ARCH");
    action->callback([flags, &context, run] { run(*flags, context); });
    return action;
  };
  add("expand", "Print the kernels that a manifest comes to, sorted, each once", expand)
      ->add_flag("--json", flags->json, "One JSON object per line, as a trace");
  add("lint", "Say whether a manifest is legal, and how many kernels it comes to", lint);
  add("diff", "Print the kernels that only one of two manifests comes to", diff)
      ->add_option("other", flags->other, "Another manifest")
      ->required()
      ->type_name("FILE");
  command->require_subcommand(1);
  command->footer(std::string("Examples:\n"
                              "  pagejit manifest lint fleet.json\n"
                              "  pagejit manifest expand fleet.json --json\n"
                              "  pagejit manifest diff old.json new.json\n\n") +
                  kExitCodeHelp);
}

}  // namespace pagejit::cli
