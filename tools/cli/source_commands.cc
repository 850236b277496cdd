// `pagejit render` and `pagejit explain`: the generator's steps, printed. They need no GPU and no
// NVRTC; explain also tells what the cache knows of tuned choices.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "generator/planner.h"
#include "generator/renderer.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/tuned_lines.h"
#include "tools/cli/word_checks.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {
namespace {

struct SourceFlags {
  SpecFlags spec;
  std::string arch;
  bool json = false;
  EngineFlags engine;  // of explain: where records lie
};

void add_flags(CLI::App& command, SourceFlags* flags) {
  add_spec_flags(command, &flags->spec, false);
  command.add_option("--arch,-a", flags->arch, "One target: sm_80, sm_90a, sm_100f, host, host_80")
      ->type_name("ARCH")
      ->check(target_words())
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

// Tile and sizes by their names in KernelConfig.
nlohmann::ordered_json json_of(const PlanCandidate& candidate, bool is_first) {
  const KernelConfig& config = candidate.config;
  return {{"spec", canonical_text(config.spec)},
          {"target", config.target.to_string()},
          {"chosen", is_first && candidate.fits},
          {"fits", candidate.fits},
          {"reason", candidate.reason},
          {"num_stages", config.attention.num_stages},
          {"token_groups", config.attention.token_groups},
          {"group_tokens", config.attention.group_tokens},
          {"row_warps", config.attention.row_warps},
          {"threads_per_cta", config.threads_per_cta()},
          {"shared_bytes", config.shared_bytes()}};
}

void print_explanation(const SourceFlags& flags, CommandContext& context) {
  KernelSpec spec;
  Target target;
  if (!read_flags(flags, &spec, &target, context)) return;
  const Result<PlanExplanation> explanation = explain(spec, target);
  if (!explanation) return context.fail(explanation.status());
  if (flags.json) {
    for (size_t i = 0; i < explanation->candidates.size(); ++i) {
      context.out << json_of(explanation->candidates[i], i == 0).dump() << "\n";
    }
    return;
  }
  constexpr int kHang = 4;  // two more than the mark of a candidate takes
  context.out << fitted(explanation->to_string(), context.out_terminal, kHang);
  // Records are looked for where an engine would; without one nothing is said.
  Result<EngineOptions> options = make_engine_options(flags.engine, [](const auto&) {});
  if (!options) return context.fail(options.status());
  const Result<std::shared_ptr<Engine>> engine = Engine::create(*options);
  if (!engine) return context.fail(engine.status());
  const Result<std::vector<TunedKernel>> tuned = find_tuned(**engine, spec, target);
  if (tuned) context.out << fitted(tuned_lines(*tuned), context.out_terminal, kHang);
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
  command->add_flag("--json", flags->json, "One JSON object per candidate, best first");
  command
      ->add_option("--cache-dir", flags->engine.cache_dir,
                   "Where tuned choices are looked for (PAGEJIT_CACHE_DIR)")
      ->type_name("DIR");
  command->footer(
      "Examples:\n"
      "  pagejit explain --head-size 128 --group-size 4 --arch sm_90a\n"
      "  pagejit explain --head-size 64 --group-size 71 --arch sm_120a\n"
      "  pagejit explain --head-size 128 --group-size 4 --arch sm_90a --json");
  command->callback([flags, &context] { print_explanation(*flags, context); });
}

}  // namespace pagejit::cli
