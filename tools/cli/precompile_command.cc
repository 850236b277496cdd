#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/output_file.h"
#include "tools/cli/precompile_run.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {
namespace {

struct PrecompileFlags {
  SpecFlags spec;
  EngineFlags engine;
  std::vector<std::string> archs;
  std::string json_path;
  bool list_models = false;
};

// Prints each reason once: a missing NVRTC fails every kernel alike. A log with its numbered source
// has some thousand lines, so that only the first is printed.
void print_failures(const std::vector<PrecompileOutcome>& outcomes, CommandContext& context) {
  std::set<std::string> printed;
  bool has_detail = false;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (!outcome.result || *outcome.result) continue;
    const Status& status = outcome.result->status();
    if (!printed.insert(status.message()).second) continue;
    context.err << "pagejit: " << outcome.job.target.to_string() << " "
                << short_spec(outcome.job.spec) << ": " << status.message() << "\n";
    if (!status.detail().empty() && !has_detail) context.err << status.detail() << "\n";
    has_detail = has_detail || !status.detail().empty();
  }
}

// The targets asked for, else that of the first GPU.
Result<std::vector<Target>> choose_targets(const PrecompileFlags& flags, Engine& engine) {
  if (!flags.archs.empty()) return parse_targets(flags.archs);
  const Result<Target> target = engine.target_of_device(0);
  if (target) return std::vector<Target>{*target};
  return Status(StatusCode::kInvalidArgument,
                "--arch is missing, and there is no GPU whose architecture could stand for it (" +
                    target.status().message() + ")");
}

// All pairs that this version serves. A spec of the user's own that it does not is an error; a
// model's is one more unsupported layer kind.
Result<std::vector<PrecompileJob>> make_jobs(const std::vector<Target>& targets, bool from_model,
                                             WorkList* work) {
  std::vector<PrecompileJob> jobs;
  for (const Target& target : targets) {
    for (const KernelSpec& spec : work->specs()) {
      if (const Status status = supports(spec, target); !status) {
        if (!from_model || status.code() != StatusCode::kUnsupported) return status;
        work->unsupported.push_back(short_spec(spec) + " for " + target.to_string() + ": " +
                                    status.message());
        continue;
      }
      jobs.push_back({spec, target});
    }
  }
  return jobs;
}

void run_jobs(const PrecompileFlags& flags, Engine& engine, const EngineOptions& options,
              const std::vector<PrecompileJob>& jobs, Progress* progress, CommandContext& context,
              std::string* report) {
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  const int threads =
      options.compile_threads > 0 ? options.compile_threads : static_cast<int>(processors);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<PrecompileOutcome> outcomes = run_precompile(
      jobs,
      [&](const KernelSpec& spec, const Target& target) { return engine.precompile(spec, target); },
      threads, context.interrupted, progress);
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  *report = outcome_table(outcomes) + outcome_summary(outcomes, wall.count()) + "\n";
  print_failures(outcomes, context);
  context.exit_code = worse(context.exit_code, outcome_exit_code(outcomes));
  if (context.interrupted.load())
    context.exit_code = worse(context.exit_code, ExitCode::kInterrupted);
  if (!flags.json_path.empty()) {
    if (const Status s = write_output(flags.json_path, outcome_json(outcomes), context.out); !s) {
      context.fail(s);
    }
  }
}

void precompile(const PrecompileFlags& flags, CommandContext& context) {
  if (flags.list_models) {
    for (const std::string& type : models::known_model_types()) context.out << type << "\n";
    return;
  }
  Result<WorkList> work = make_work_list(flags.spec);
  if (!work) return context.fail(work.status());
  // Nothing is compiled for an architecture that a later word makes illegal.
  if (const auto targets = parse_targets(flags.archs); !targets)
    return context.fail(targets.status());

  Progress* bar = nullptr;
  const auto on_log = [&](const std::string& line) {
    if (bar != nullptr) {
      bar->message("pagejit: " + line);
    } else {
      context.err << "pagejit: " << line << "\n";
    }
  };
  const Result<EngineOptions> options = make_engine_options(flags.engine, on_log);
  if (!options) return context.fail(options.status());
  if (!options->disk_cache) {
    return context.fail(
        Status(StatusCode::kInvalidArgument,
               "PAGEJIT_CACHE=off: must be on, since precompile stores its kernels"));
  }
  if (const Status status = check_cache_directory(*options); !status) return context.fail(status);
  const auto engine = Engine::create(*options);
  if (!engine) return context.fail(engine.status());
  const auto targets = choose_targets(flags, **engine);
  if (!targets) return context.fail(targets.status());
  const auto jobs = make_jobs(*targets, !flags.spec.models.empty(), &*work);
  if (!jobs) return context.fail(jobs.status());

  const bool json_to_out = flags.json_path == "-";
  if (!json_to_out) context.out << work->description << std::flush;
  std::string report;
  {
    Progress progress(context.err, context.err_is_terminal, jobs->size());
    bar = &progress;
    run_jobs(flags, **engine, *options, *jobs, &progress, context, &report);
    bar = nullptr;
  }
  if (!json_to_out && !jobs->empty()) context.out << report;
  const uint64_t unstored = (*engine)->stats().publish_failures;
  if (unstored > 0) {
    context.fail(Status(StatusCode::kCacheError, std::to_string(unstored) +
                                                     " kernels could not be stored in the cache "
                                                     "directory; PAGEJIT_LOG=info tells why"));
  }
  for (const std::string& sentence : work->unsupported) {
    context.fail(Status(StatusCode::kUnsupported, sentence), ExitCode::kUnsupportedLayers);
  }
}

}  // namespace

void add_precompile_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("precompile", "Compile a model's kernels into the cache; needs no GPU");
  const auto flags = std::make_shared<PrecompileFlags>();
  add_spec_flags(*command, &flags->spec, true);
  command
      ->add_option(
          "--arch,-a", flags->archs,
          "Targets, separated by commas or repeated: sm_80, sm_90a, sm_100f, host, host_80 "
          "(default: the first GPU's)")
      ->type_name("ARCH")
      ->group("What");
  add_engine_flags(*command, &flags->engine, false);
  command
      ->add_option("--json", flags->json_path,
                   "A file for one JSON object per kernel; - is the standard output")
      ->type_name("FILE");
  command->add_flag("--list-models", flags->list_models,
                    "Print every model_type that --model understands");
  command->footer(
      std::string(
          "Examples:\n"
          "  pagejit precompile --model Llama-3.1-8B/ --arch sm_80,sm_90a\n"
          "  pagejit precompile --model config.json --tp 4 --dtype f16 --arch sm_90a -j 4\n"
          "  pagejit precompile --head-size 128 --num-heads 32 --num-kv-heads 8 --arch host\n\n"
          "Compiles whatever PAGEJIT_JIT says.\n\n") +
      kExitCodeHelp);
  command->callback([flags, &context] { precompile(*flags, context); });
}

}  // namespace pagejit::cli
