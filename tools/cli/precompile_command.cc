#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/output_file.h"
#include "tools/cli/precompile_list.h"
#include "tools/cli/precompile_output.h"
#include "tools/cli/precompile_repeat.h"
#include "tools/cli/precompile_run.h"
#include "tools/cli/word_checks.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {
namespace {

struct PrecompileFlags {
  ListFlags list;
  EngineFlags engine;
  std::vector<std::string> bundles;
  std::string json_path;
  std::string output_path;
  bool verify = false;
  bool reproducible = false;
  bool list_models = false;
};

// Prints each reason once: a missing NVRTC fails every kernel alike. A log with its numbered source
// has some thousand lines, so that only the first is printed. What fails verification is all
// printed.
void print_failures(const std::vector<PrecompileOutcome>& outcomes, CommandContext& context) {
  std::set<std::string> printed;
  bool has_detail = false;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (!outcome.result || *outcome.result) continue;
    const Status& status = outcome.result->status();
    if (!printed.insert(status.message()).second) continue;
    std::string kernel;
    // The sentences of a verification name their kernel.
    if (status.code() != StatusCode::kNotFound && status.code() != StatusCode::kDataCorrupt) {
      kernel = outcome.job.target.to_string() + " " + short_spec(outcome.job.spec) + ": ";
    }
    context.note(kernel + status.message());
    if (!status.detail().empty() && !has_detail) context.err << status.detail() << "\n";
    has_detail = has_detail || !status.detail().empty();
  }
}

int thread_count(const EngineOptions& options) {
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  return options.compile_threads > 0 ? options.compile_threads : static_cast<int>(processors);
}

// One pass over the list with its report.
std::vector<PrecompileOutcome> run_pass(const std::vector<PrecompileJob>& jobs,
                                        const PrecompileFunction& function, int threads,
                                        Progress* progress, CommandContext& context,
                                        std::string* report) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<PrecompileOutcome> outcomes =
      run_precompile(jobs, function, threads, context.interrupted, progress);
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  *report += outcome_table(outcomes, context.out_terminal) +
             outcome_summary(outcomes, wall.count()) + "\n";
  print_failures(outcomes, context);
  context.exit_code = worse(context.exit_code, outcome_exit_code(outcomes));
  if (context.interrupted.load())
    context.exit_code = worse(context.exit_code, ExitCode::kInterrupted);
  return outcomes;
}

// Compiles what came out well once more.
void run_again(const std::vector<PrecompileOutcome>& outcomes, std::shared_ptr<Engine> engine,
               const EngineOptions& options, Progress* progress, CommandContext& context,
               std::string* report) {
  const Result<PrecompileFunction> repeat = repeat_function(std::move(engine), options);
  if (!repeat) return context.fail(repeat.status());
  std::vector<PrecompileJob> jobs;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (outcome.result && *outcome.result) jobs.push_back(outcome.job);
  }
  *report += "compiled again:\n";
  run_pass(jobs, *repeat, thread_count(options), progress, context, report);
}

// The passes, and the files that are asked for.
void run_list(const PrecompileFlags& flags, const std::shared_ptr<Engine>& engine,
              const EngineOptions& options, const std::vector<PrecompileJob>& jobs,
              Progress* progress, CommandContext& context, std::string* report) {
  const std::vector<PrecompileOutcome> outcomes =
      run_pass(jobs, flags.verify ? verify_function(engine) : make_function(engine),
               thread_count(options), progress, context, report);
  if (!flags.json_path.empty()) {
    if (const Status s = write_output(flags.json_path, outcome_json(outcomes), context.out); !s) {
      context.fail(s);
    }
  }
  if (flags.reproducible) run_again(outcomes, engine, options, progress, context, report);
  if (!flags.output_path.empty()) {
    if (const Status s = write_bundle_of(flags.output_path, *engine, outcomes, options.tuned); !s) {
      context.fail(s, s.code() == StatusCode::kNotFound ? ExitCode::kIo : exit_code_of(s));
    }
  }
}

Result<EngineOptions> make_options(const PrecompileFlags& flags,
                                   std::function<void(const std::string&)> on_log) {
  Result<EngineOptions> options = make_engine_options(flags.engine, std::move(on_log));
  if (!options) return options.status();
  options->bundles.insert(options->bundles.begin(), flags.bundles.begin(), flags.bundles.end());
  if (flags.verify) return options;
  // What is there already does not come into the directory, which is to be complete.
  options->memory_bundles.clear();
  options->bundles.clear();
  options->read_only_dirs.clear();
  options->cache_max_bytes = 0;  // nor does it evict what this run has made
  if (!options->disk_cache) {
    return Status(StatusCode::kInvalidArgument,
                  "PAGEJIT_CACHE=off: must be on, since precompile stores its kernels");
  }
  if (Status status = check_cache_directory(*options); !status) return status;
  return options;
}

void precompile(const PrecompileFlags& flags, CommandContext& context) {
  if (flags.list_models) {
    for (const std::string& type : models::known_model_types()) context.out << type << "\n";
    return;
  }
  // Nothing is compiled for an architecture that a later word makes illegal.
  if (const Status s = check_list_flags(flags.list); !s) return context.fail(s);

  Progress* bar = nullptr;
  const auto on_log = [&](const std::string& line) {
    if (bar != nullptr) {
      bar->message("pagejit: " + line);
    } else {
      context.note(line);
    }
  };
  const Result<EngineOptions> options = make_options(flags, on_log);
  if (!options) return context.fail(options.status());
  const auto engine = Engine::create(*options);
  if (!engine) return context.fail(engine.status());
  const Result<PrecompileList> list = make_precompile_list(flags.list, **engine);
  if (!list) return context.fail(list.status());
  for (const std::string& sentence : list->damaged) context.note(sentence);

  const bool json_to_out = flags.json_path == "-";
  if (!json_to_out) context.out << fitted(list->description, context.out_terminal) << std::flush;
  std::string report;
  {
    const size_t passes = flags.reproducible ? 2 : 1;
    Progress progress(context.err, context.err_terminal, list->jobs.size() * passes);
    bar = &progress;
    run_list(flags, *engine, *options, list->jobs, &progress, context, &report);
    bar = nullptr;
  }
  if (!json_to_out && !list->jobs.empty()) context.out << report;
  const uint64_t unstored = (*engine)->stats().publish_failures;
  if (unstored > 0) {
    context.fail(Status(StatusCode::kCacheError, std::to_string(unstored) +
                                                     " kernels could not be stored in the cache "
                                                     "directory; PAGEJIT_LOG=info tells why"));
  }
  for (const std::string& sentence : list->unsupported) {
    context.fail(Status(StatusCode::kUnsupported, sentence), ExitCode::kUnsupportedLayers);
  }
}

void add_list_flags(CLI::App& command, ListFlags* flags) {
  command
      .add_option("--manifest", flags->manifests,
                  "A JSON file that lists kernels (tools/manifest); may be repeated")
      ->type_name("FILE")
      ->group("What");
  command
      .add_option("--trace", flags->traces,
                  "A file that a program wrote with PAGEJIT_RECORD; may be repeated")
      ->type_name("FILE")
      ->group("What");
  command
      .add_option("--arch,-a", flags->archs,
                  "Targets, separated by commas or repeated: sm_80, sm_90a, sm_100f, host, host_80 "
                  "(default: the first GPU's). Of manifests and traces only kernels for these")
      ->type_name("ARCH")
      ->check(target_words())
      ->group("What");
  command
      .add_option("--shard", flags->shard,
                  "Part I of N of the sorted list: the parts are disjoint and together all of it")
      ->type_name("I/N")
      ->group("What");
}

}  // namespace

void add_precompile_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("precompile", "Compile a model's kernels into the cache; needs no GPU");
  const auto flags = std::make_shared<PrecompileFlags>();
  add_spec_flags(*command, &flags->list.spec, true);
  add_list_flags(*command, &flags->list);
  add_engine_flags(*command, &flags->engine, false);
  CLI::Option* bundle =
      command
          ->add_option("--bundle", flags->bundles,
                       "With --verify: a bundle to find kernels in (PAGEJIT_BUNDLES)")
          ->type_name("FILE")
          ->group("How");
  command
      ->add_option("--output,-o", flags->output_path,
                   "A file for all of these kernels as one bundle, the same bytes on each build")
      ->type_name("FILE");
  CLI::Option* verify = command->add_flag("--verify", flags->verify,
                                          "Compile nothing: whether all of these kernels are "
                                          "stored, in the cache directory or bundles");
  bundle->needs(verify);
  command
      ->add_flag("--reproducible", flags->reproducible,
                 "Compile each kernel once more and compare the images byte by byte")
      ->excludes(verify);
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
          "  pagejit precompile --head-size 128 --num-heads 32 --num-kv-heads 8 --arch host\n"
          "  pagejit precompile --manifest fleet.json --shard 1/4 --output part1.pjb\n"
          "  pagejit precompile --trace record.jsonl --verify\n\n"
          "Compiles whatever PAGEJIT_JIT says.\n\n") +
      kExitCodeHelp);
  command->callback([flags, &context] { precompile(*flags, context); });
}

}  // namespace pagejit::cli
