// `pagejit key`: the name of the cache entry that a kernel has on this machine, compiled or not.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "generator/planner.h"
#include "generator/renderer.h"
#include "runtime/engine/image_key.h"
#include "runtime/jit/compiler.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/tuned_lines.h"
#include "tools/cli/word_checks.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {
namespace {

struct KeyFlags {
  SpecFlags spec;
  EngineFlags engine;
  std::string arch;
  bool explain = false;
  bool json = false;
};

Result<KernelSource> render_source(const KeyFlags& flags) {
  const Result<KernelSpec> spec = make_spec(flags.spec);
  if (!spec) return spec.status();
  const Result<Target> target = parse_target(flags.arch);
  if (!target) return target.status().with_context("--arch");
  const Result<KernelConfig> config = plan(*spec, *target);
  if (!config) return config.status();
  return render(*config);
}

void print_key(const KeyFlags& flags, CommandContext& context) {
  const Result<KernelSource> source = render_source(flags);
  if (!source) return context.fail(source.status());
  const Result<EngineOptions> options = make_engine_options(flags.engine, [](const auto&) {});
  if (!options) return context.fail(options.status());
  const std::shared_ptr<Compiler> compiler =
      source->target.is_host() ? make_host_compiler(options->host_compiler, options->host_build)
                               : make_nvrtc_compiler(options->nvrtc_path);
  cache::KeyIngredients ingredients = key_ingredients(*source, *compiler);
  // A part of the name, so there is none without it.
  const Result<std::string> identity = compiler->identity();
  if (!identity) return context.fail(identity.status());
  ingredients.compiler_identity = *identity;
  if (flags.json) {
    const cache::Key made = cache::make_key(ingredients);
    const nlohmann::ordered_json json = {{"key", made.name()},
                                         {"source", cache::to_hex(made.source)},
                                         {"compiler", cache::to_hex(made.compiler)},
                                         {"kernel", source->kernel_name},
                                         {"target", ingredients.target},
                                         {"options", ingredients.options},
                                         {"parameter_abi", ingredients.parameter_abi},
                                         {"compiler_identity", ingredients.compiler_identity},
                                         {"format_version", ingredients.format_version},
                                         {"source_bytes", ingredients.text.size()}};
    context.out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else if (flags.explain) {
    context.out << fitted(cache::explain(ingredients), context.out_terminal);
    const auto engine = Engine::create(*options);
    if (!engine) return context.fail(engine.status());
    const KernelConfig& config = std::get<KernelConfig>(source->config);
    const auto tuned = find_tuned(**engine, config.spec, config.target);
    if (tuned) context.out << fitted(tuned_lines(*tuned), context.out_terminal);
  } else {
    context.out << cache::make_key(ingredients).name() << "\n";
  }
}

}  // namespace

void add_key_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("key", "Print the name of a kernel's cache entry");
  const auto flags = std::make_shared<KeyFlags>();
  add_spec_flags(*command, &flags->spec, false);
  command->add_option("--arch,-a", flags->arch, "One target: sm_80, sm_90a, sm_100f, host, host_80")
      ->type_name("ARCH")
      ->check(target_words())
      ->required()
      ->group("What");
  command
      ->add_option("--nvrtc", flags->engine.nvrtc,
                   "libnvrtc.so, or the folder that holds it (PAGEJIT_NVRTC)")
      ->type_name("PATH")
      ->group("How");
  command->add_flag("--explain", flags->explain,
                    "Every ingredient of the name, one per line, and tuned choices");
  command->add_flag("--json", flags->json, "The same as one JSON object");
  command->footer(
      "Compiles nothing, and needs no GPU; the compiler is a part of the name.\n\n"
      "Examples:\n"
      "  pagejit key --head-size 128 --group-size 4 --arch sm_90a\n"
      "  pagejit key --head-size 128 --group-size 4 --arch sm_90a --explain\n"
      "  pagejit key --head-size 128 --group-size 4 --arch sm_90a --json");
  command->callback([flags, &context] { print_key(*flags, context); });
}

}  // namespace pagejit::cli
