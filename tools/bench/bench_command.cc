// `pagejit bench`: suites of kernels on a GPU, the host side anywhere, and comparing two runs.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include "runtime/jit/compiler.h"
#include "tools/bench/attention_bench.h"
#include "tools/bench/bench_beside.h"
#include "tools/bench/bench_comparison.h"
#include "tools/bench/bench_flags.h"
#include "tools/bench/bench_goals.h"
#include "tools/bench/bench_svg.h"
#include "tools/bench/cascade_bench.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/text_table.h"
#include "tools/cli/version.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {
namespace {

struct Suite {
  const char* name;
  const char* title;
  std::vector<AttentionBenchCase> (*cases)();  // null: cascade_cases()
};

constexpr Suite kSuites[] = {
    {"decode", "Decode: caches rotated out of the L2, shuffled blocks, graph replay",
     &decode_cases},
    {"v1v2", "One pass over a sequence (as vLLM's v1) and split (as its v2)", &v1v2_cases},
    {"paging", "What paging costs, against block ids that count up", &paging_cases},
    {"fp8", "Decode over K and V of 8 bits, against bf16", &fp8_cases},
    {"mla", "Decode over a latent cache of 512 + 64 (MLA), bf16 and fp8", &mla_cases},
    {"prefill", "Causal prompts and chunks; operations are 4 * Lq * Lk / 2 * heads * head size",
     &prefill_cases},
    {"mixed", "Decode steps and a chunk of a prompt in one launch", &mixed_cases},
    {"cascade", "Sequences with a shared prefix, as a cascade and by the flat kernel", nullptr},
};

// Nor goes on where nobody reads any more.
Status check_interrupt(const CommandContext& context) {
  const bool stop = context.interrupted.load() || !context.out;
  return stop ? Status(StatusCode::kCancelled, "interrupted") : Status();
}

// "met", "MISSED", "" without a goal.
std::string goal_text(const BenchResult& result) {
  if (!result.goal) return "";
  const BenchGoal& goal = *result.goal;
  return (goal.figure == "value" ? result.unit : goal.figure) + (goal.at_least ? " >= " : " <= ") +
         format_number("%g", goal.limit) + (*result.is_goal_met() ? ": met" : ": MISSED");
}

Style style_of(const BenchResult& result) {
  return result.is_goal_met().value_or(true) ? Style::kPlain : Style::kBad;
}

// Writes a suite's table; its results are added to the run.
Status run_attention_suite(const Suite& suite, BenchDevice& device, CommandContext& context,
                           bool is_quiet, BenchRun* run) {
  TextTable table({{"case"},
                   {"batch", Align::kRight},
                   {"tokens", Align::kRight},
                   {"chunk", Align::kRight},
                   {"spec"},
                   {"splits", Align::kRight},
                   {"us", Align::kRight},
                   {"min us", Align::kRight},
                   {"TB/s", Align::kRight},
                   {"of read", Align::kRight},
                   {"TFLOP/s", Align::kRight},
                   {"of contiguous", Align::kRight},
                   {"goal"}});
  const double read = run->environment.read_tb_per_s;
  double contiguous_us = 0;
  for (const AttentionBenchCase& c : suite.cases()) {
    if (Status status = check_interrupt(context); !status) return status;
    const Result<AttentionBenchResult> r = run_attention_bench(device, c);
    if (!r) return r.status();
    BenchResult result = to_bench_result(*r, suite.name);
    const double us = r->times.median_us;
    if (!c.shuffled_blocks) contiguous_us = us;
    if (contiguous_us > 0) result.figures["of_contiguous"] = us / contiguous_us;
    result.goal = goal_of(result, device.gpu());
    const std::string chunk = c.chunk_queries == 0 ? ""
                                                   : std::to_string(c.chunk_queries) + " of " +
                                                         std::to_string(c.chunk_seq_len);
    table.add_row(
        {c.name, std::to_string(c.num_seqs), std::to_string(c.seq_len), chunk,
         canonical_text(c.spec), std::to_string(r->num_splits), format_number("%.2f", us),
         format_number("%.2f", r->times.min_us), format_number("%.3f", r->terabytes_per_s()),
         format_number("%.1f %%", 100 * r->terabytes_per_s() / read),
         format_number("%.1f", r->teraflops()),
         contiguous_us > 0 ? format_number("%+.1f %%", 100 * (us / contiguous_us - 1)) : "",
         goal_text(result)},
        style_of(result));
    run->results.push_back(std::move(result));
  }
  if (!is_quiet) context.out << table.to_string(context.out_terminal) << "\n";
  return Status::ok();
}

Status run_cascade_suite(BenchDevice& device, CommandContext& context, bool is_quiet,
                         BenchRun* run) {
  TextTable table({{"case"},
                   {"batch", Align::kRight},
                   {"prefix", Align::kRight},
                   {"suffix", Align::kRight},
                   {"splits", Align::kRight},
                   {"us", Align::kRight},
                   {"min us", Align::kRight},
                   {"flat us", Align::kRight},
                   {"speedup", Align::kRight},
                   {"goal"}});
  for (const CascadeBenchCase& c : cascade_cases()) {
    if (Status status = check_interrupt(context); !status) return status;
    const Result<CascadeBenchResult> r = run_cascade_bench(device, c);
    if (!r) return r.status();
    BenchResult result = to_bench_result(*r);
    result.goal = goal_of(result, device.gpu());
    table.add_row(
        {c.name, std::to_string(c.num_seqs), std::to_string(c.prefix_len),
         std::to_string(c.suffix_len),
         std::to_string(r->prefix_splits) + ", " + std::to_string(r->suffix_splits),
         format_number("%.2f", r->cascade.median_us), format_number("%.2f", r->cascade.min_us),
         format_number("%.2f", r->flat.median_us), format_number("%.2f", r->speedup()),
         goal_text(result)},
        style_of(result));
    run->results.push_back(std::move(result));
  }
  if (!is_quiet) context.out << table.to_string(context.out_terminal) << "\n";
  return Status::ok();
}

Status run_suite(const Suite& suite, BenchDevice& device, CommandContext& context, bool is_quiet,
                 BenchRun* run) {
  const Result<double> read = device.read_bandwidth();
  if (!read) return read.status();
  run->environment.read_tb_per_s = *read;
  if (!is_quiet) {
    context.out << suite.title << "\n"
                << device.name() << "; a kernel that only reads: " << format_number("%.2f", *read)
                << " TB/s\n";
  }
  return suite.cases != nullptr ? run_attention_suite(suite, device, context, is_quiet, run)
                                : run_cascade_suite(device, context, is_quiet, run);
}

// What compiles the kernels that are measured; "" where there is none.
std::string compiler_identity(const EngineOptions& options) {
  const Result<std::string> identity = make_nvrtc_compiler(options.nvrtc_path)->identity();
  return identity ? *identity : "";
}

// What was measured is kept even where a later case failed or was interrupted.
void write_run(const BenchFlags& flags, const BenchRun& run, CommandContext& context) {
  if (!run.results.empty()) write_files(flags, to_json(run), results_svg(run), context);
}

void run_suites(const BenchFlags& flags, const std::vector<const Suite*>& suites,
                CommandContext& context) {
  Result<EngineOptions> options =
      make_engine_options(flags.engine, [&context](const std::string& line) {
        context.err << fitted(line + "\n", context.err_terminal);
      });
  if (!options) return context.fail(options.status());
  auto session = DeviceSession::open(*options);
  if (!session) return context.fail(session.status());
  const auto engine = Engine::create(*options);
  if (!engine) return context.fail(engine.status());
  const auto device = BenchDevice::create(**engine, **session, *options);
  if (!device) return context.fail(device.status(), ExitCode::kEnvironment);

  BenchRun run;
  run.environment = describe_host(version_text());
  run.environment.gpu = (*device)->gpu();
  run.environment.driver_cuda = (*device)->driver_cuda();
  run.environment.compiler = compiler_identity(*options);
  Status status;
  for (const Suite* suite : suites) {
    if (status) status = run_suite(*suite, **device, context, flags.is_quiet(), &run);
  }
  write_run(flags, run, context);
  if (!status) context.fail(status);
}

void run_program(const std::string& suite, const std::vector<std::string>& files,
                 const BenchFlags& flags, CommandContext& context) {
  Result<EngineOptions> options = make_engine_options(flags.engine, [](const std::string&) {});
  if (!options) return context.fail(options.status());
  BenchRun run;
  run.environment = describe_host(version_text());
  run.environment.compiler = compiler_identity(*options);
  run.results = run_beside(suite, "pagejit-bench-" + suite, files, options->nvrtc_path,
                           flags.is_quiet(), context);
  write_run(flags, run, context);
}

// A flag that would change nothing is refused. The programs of these suites have cache directories,
// drivers and numbers of threads of their own.
Status check_flags_of_program(const std::string& suite, const CLI::App& command) {
  for (const char* name : {"--cache-dir", "--jobs", "--driver"}) {
    if (command.count(name) == 0) continue;
    return bad_usage(std::string(name) + ": is for suites on a GPU; bench " + suite +
                     " takes --nvrtc, --json and --svg");
  }
  return Status::ok();
}

void run(const BenchFlags& flags, const CLI::App& command, CommandContext& context) {
  if (const Status status = check_outputs(flags); !status) return context.fail(status);
  if (!flags.compare.empty()) {
    if (command.get_subcommands().empty()) return compare_files(flags, context);
    return context.fail(bad_usage("--compare takes no suite"));
  }
  for (const char* suite : {"host", "store"}) {
    if (!command.got_subcommand(suite)) continue;
    const Status status = check_flags_of_program(suite, command);
    if (!status) return context.fail(status);
  }
  if (command.got_subcommand("host")) {
    return run_program("host", {"libpagejit-stub-driver.so", "../lib/libpagejit.so"}, flags,
                       context);
  }
  if (command.got_subcommand("store")) return run_program("store", {}, flags, context);
  std::vector<const Suite*> chosen;
  for (const Suite& suite : kSuites) {
    if (command.got_subcommand(suite.name) || command.get_subcommands().empty())
      chosen.push_back(&suite);
  }
  run_suites(flags, chosen, context);
}

// A loss is compared with it: a number that is none would let every loss pass.
CLI::Validator percentage() {
  const auto check = [](std::string& word) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    const bool is_number = !word.empty() && *end == '\0' && std::isfinite(value);
    return is_number && value >= 0 ? "" : models::printable(word) + ": must be a number from 0 on";
  };
  return {check, ""};
}

}  // namespace

void add_bench_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("bench", "Measure kernels on a GPU, and the host side anywhere");
  const auto flags = std::make_shared<BenchFlags>();
  add_engine_flags(*command, &flags->engine, true);
  command->add_option("--json", flags->json, "Write the results to FILE (\"-\": standard output)")
      ->type_name("FILE");
  command->add_option("--svg", flags->svg, "Draw the results, with their goals, to FILE")
      ->type_name("FILE");
  CLI::Option* compared =
      command
          ->add_option("--compare", flags->compare,
                       "Measure nothing: compare two files of --json, case by case. --json and "
                       "--svg then write the comparison")
          ->expected(2)
          ->type_name("FILE");
  command
      ->add_option("--threshold", flags->threshold,
                   "With --compare: exit code 5 where a case of the second file is worse by more "
                   "than so many percent, and by more than its noise")
      ->check(percentage())
      ->needs(compared)
      ->type_name("PERCENT");
  command->require_subcommand(0, 1);
  command->footer(
      std::string(
          "Without a suite: all but host and store. A case is timed only after its results were\n"
          "checked. The emulator has no times worth printing and is refused.\n\n"
          "Examples:\n"
          "  pagejit bench decode\n"
          "  pagejit bench --json results.json\n"
          "  pagejit bench decode --json decode.json --svg decode.svg\n"
          "  pagejit bench --compare before.json after.json --threshold 5\n"
          "  pagejit bench host\n"
          "  pagejit bench store\n\n") +
      kExitCodeHelp);
  const auto add = [&](const std::string& name, const std::string& title,
                       const std::string& but = "") {
    CLI::App* suite = command->add_subcommand(name, title)->fallthrough();
    suite->footer("Takes the options of `pagejit bench`" + but +
                  ".\n\nExamples:\n  pagejit bench " + name + "\n  pagejit bench " + name +
                  " --json " + name + ".json --svg " + name + ".svg");
  };
  for (const Suite& suite : kSuites) add(suite.name, suite.title);
  const std::string but = " but --cache-dir, --jobs and --driver";
  add("host", "What compiling, preparing and launching cost the host; needs no GPU", but);
  add("store",
      "What the store of kernels costs processes, threads and calls; needs no GPU, takes some "
      "minutes",
      but);
  command->callback([flags, command, &context] { run(*flags, *command, context); });
}

}  // namespace pagejit::cli
