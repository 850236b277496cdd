// `pagejit render` and `pagejit explain`: the generator's steps, printed. They need no GPU, no
// NVRTC and no cache.
#include <CLI/CLI.hpp>
#include <memory>

#include "generator/planner.h"
#include "generator/renderer.h"
#include "tools/cli/commands.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {
namespace {

struct SourceFlags {
  SpecFlags spec;
  std::string arch;
};

void add_flags(CLI::App& command, SourceFlags* flags) {
  add_spec_flags(command, &flags->spec, false);
  command.add_option("--arch,-a", flags->arch, "One target: sm_80, sm_90a, sm_100f, host, host_80")
      ->type_name("ARCH")
      ->required()
      ->group("What");
}

// What both commands start with. False where it failed, which is then said.
bool read_flags(const SourceFlags& flags, KernelSpec* spec, Target* target,
                CommandContext& context) {
  const Result<KernelSpec> given = make_spec(flags.spec);
  const Result<Target> parsed = parse_target(flags.arch);
  if (!given) {
    context.fail(given.status());
  } else if (!parsed) {
    context.fail(parsed.status().with_context("--arch"));
  } else {
    *spec = *given;
    *target = *parsed;
    return true;
  }
  return false;
}

void print_source(const SourceFlags& flags, CommandContext& context) {
  KernelSpec spec;
  Target target;
  if (!read_flags(flags, &spec, &target, context)) return;
  const Result<KernelConfig> config = plan(spec, target);
  if (!config) return context.fail(config.status());
  const Result<KernelSource> source = render(*config);
  if (!source) return context.fail(source.status());
  context.out << source->text;
}

void print_explanation(const SourceFlags& flags, CommandContext& context) {
  KernelSpec spec;
  Target target;
  if (!read_flags(flags, &spec, &target, context)) return;
  const Result<PlanExplanation> explanation = explain(spec, target);
  if (!explanation) return context.fail(explanation.status());
  context.out << explanation->to_string();
}

}  // namespace

void add_render_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("render", "Print the source of a kernel");
  const auto flags = std::make_shared<SourceFlags>();
  add_flags(*command, flags.get());
  command->footer(
      "Examples:\n"
      "  pagejit render --head-size 128 --group-size 4 --arch sm_90a\n"
      "  pagejit render --head-size 80 --num-heads 32 --num-kv-heads 32 --dtype f16 --arch host");
  command->callback([flags, &context] { print_source(*flags, context); });
}

void add_explain_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "explain", "Print the tile configurations that were weighed, and why they lost");
  const auto flags = std::make_shared<SourceFlags>();
  add_flags(*command, flags.get());
  command->footer(
      "Examples:\n"
      "  pagejit explain --head-size 128 --group-size 4 --arch sm_90a\n"
      "  pagejit explain --head-size 64 --group-size 71 --arch sm_120a");
  command->callback([flags, &context] { print_explanation(*flags, context); });
}

}  // namespace pagejit::cli
