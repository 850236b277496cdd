// `pagejit bench`: suites of kernels on a GPU, host anywhere.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tools/bench/attention_bench.h"
#include "tools/bench/cascade_bench.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_table.h"

extern char** environ;

namespace pagejit::cli {
namespace {

struct BenchFlags {
  EngineFlags engine;
  std::string json;
};

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

std::string format(const char* pattern, double value) {
  char text[40];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

Status check_interrupt(const CommandContext& context) {
  return context.interrupted.load() ? Status(StatusCode::kCancelled, "interrupted") : Status();
}

// One suite's table, and its lines of JSON.
Status run_attention_suite(const Suite& suite, BenchDevice& device, double read,
                           CommandContext& context, std::vector<std::string>* json) {
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
                   {"of contiguous", Align::kRight}});
  double contiguous_us = 0;
  for (const AttentionBenchCase& c : suite.cases()) {
    if (const Status status = check_interrupt(context); !status) return status;
    const Result<AttentionBenchResult> r = run_attention_bench(device, c);
    if (!r) return r.status();
    const double us = r->times.median_us;
    if (!c.shuffled_blocks) contiguous_us = us;
    const std::string chunk = c.chunk_queries == 0 ? ""
                                                   : std::to_string(c.chunk_queries) + " of " +
                                                         std::to_string(c.chunk_seq_len);
    table.add_row({c.name, std::to_string(c.num_seqs), std::to_string(c.seq_len), chunk,
                   canonical_text(c.spec), std::to_string(r->num_splits), format("%.2f", us),
                   format("%.2f", r->times.min_us), format("%.3f", r->terabytes_per_s()),
                   format("%.1f %%", 100 * r->terabytes_per_s() / read),
                   format("%.1f", r->teraflops()),
                   contiguous_us > 0 ? format("%+.1f %%", 100 * (us / contiguous_us - 1)) : ""});
    json->push_back(to_json(*r, read));
  }
  context.out << table.to_string(context.out_terminal) << "\n";
  return Status::ok();
}

Status run_cascade_suite(BenchDevice& device, double read, CommandContext& context,
                         std::vector<std::string>* json) {
  TextTable table({{"case"},
                   {"batch", Align::kRight},
                   {"prefix", Align::kRight},
                   {"suffix", Align::kRight},
                   {"splits", Align::kRight},
                   {"us", Align::kRight},
                   {"min us", Align::kRight},
                   {"flat us", Align::kRight},
                   {"speedup", Align::kRight}});
  for (const CascadeBenchCase& c : cascade_cases()) {
    if (const Status status = check_interrupt(context); !status) return status;
    const Result<CascadeBenchResult> r = run_cascade_bench(device, c);
    if (!r) return r.status();
    table.add_row({c.name, std::to_string(c.num_seqs), std::to_string(c.prefix_len),
                   std::to_string(c.suffix_len),
                   std::to_string(r->prefix_splits) + ", " + std::to_string(r->suffix_splits),
                   format("%.2f", r->cascade.median_us), format("%.2f", r->cascade.min_us),
                   format("%.2f", r->flat.median_us), format("%.2f", r->speedup())});
    json->push_back(to_json(*r, read));
  }
  context.out << table.to_string(context.out_terminal) << "\n";
  return Status::ok();
}

Status run_suite(const Suite& suite, BenchDevice& device, CommandContext& context,
                 std::vector<std::string>* json) {
  const Result<double> read = device.read_bandwidth();
  if (!read) return read.status();
  context.out << suite.title << "\n"
              << device.name() << "; a kernel that only reads: " << format("%.2f", *read)
              << " TB/s\n";
  return suite.cases != nullptr ? run_attention_suite(suite, device, *read, context, json)
                                : run_cascade_suite(device, *read, context, json);
}

void run_suites(const BenchFlags& flags, const std::vector<const Suite*>& suites,
                CommandContext& context) {
  Result<EngineOptions> options = make_engine_options(
      flags.engine, [&context](const std::string& line) { context.err << line << "\n"; });
  if (!options) return context.fail(options.status());
  auto session = DeviceSession::open(*options);
  if (!session) return context.fail(session.status());
  const auto engine = Engine::create(*options);
  if (!engine) return context.fail(engine.status());
  const auto device = BenchDevice::create(**engine, **session, *options);
  if (!device) return context.fail(device.status(), ExitCode::kEnvironment);

  std::vector<std::string> results;
  Status status;
  for (const Suite* suite : suites) {
    if (status) status = run_suite(*suite, **device, context, &results);
  }
  // What was measured is kept even where a later case failed.
  if (!flags.json.empty()) {
    std::string text = "{\"device\": \"" + (*device)->name() + "\", \"results\": [\n";
    for (size_t i = 0; i < results.size(); ++i)
      text += "  " + results[i] + (i + 1 < results.size() ? ",\n" : "\n");
    text += "]}\n";
    if (const Status written = write_output(flags.json, text, context.out); !written)
      context.fail(written);
  }
  if (!status) context.fail(status);
}

// Runs a benchmark program that lies beside this command, as `name SELF FILES...`; it measures
// apart from this process, whose exit code it gives.
void run_beside(CommandContext& context, const std::string& name,
                const std::vector<std::string>& files) {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path program = here / name;
  std::vector<std::string> words = {program, program};
  for (const std::string& file : files) words.push_back(here / file);
  for (const std::filesystem::path file : words) {
    if (std::filesystem::exists(file, error)) continue;
    return context.fail(Status(StatusCode::kNotFound,
                               file.filename().string() +
                                   " is not beside this command; this needs a build with tests"),
                        ExitCode::kEnvironment);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  context.out.flush();
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0 ||
      waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) {
    return context.fail(Status(StatusCode::kInternal, name + " could not be run"));
  }
  context.exit_code = static_cast<ExitCode>(WEXITSTATUS(status));
}

void run_host(CommandContext& context) {
  run_beside(context, "pagejit-bench-host", {"libpagejit-stub-driver.so", "../lib/libpagejit.so"});
}

}  // namespace

void add_bench_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("bench", "Measure kernels on a GPU, and the host side anywhere");
  const auto flags = std::make_shared<BenchFlags>();
  add_engine_flags(*command, &flags->engine, true);
  command->add_option("--json", flags->json, "Write the results to FILE (\"-\": standard output)")
      ->type_name("FILE");
  command->require_subcommand(0, 1);
  command->footer(
      "Without a suite: all but host and store. A case is timed only after its results were "
      "checked. The "
      "emulator has no times worth\n"
      "printing and is refused.\n"
      "Examples:\n"
      "  pagejit bench decode\n"
      "  pagejit bench cascade\n"
      "  pagejit bench --json results.json\n"
      "  pagejit bench host\n"
      "  pagejit bench store");
  for (const Suite& suite : kSuites) {
    command->add_subcommand(suite.name, suite.title)->fallthrough();
  }
  command->add_subcommand("host",
                          "What compiling, preparing and launching cost the host; needs no GPU");
  command->add_subcommand("store",
                          "What the store of kernels costs processes, threads and calls; needs no "
                          "GPU, takes some minutes");
  command->callback([flags, command, &context] {
    if (command->got_subcommand("host")) return run_host(context);
    if (command->got_subcommand("store")) {
      return run_beside(context, "pagejit-bench-store", {});
    }
    std::vector<const Suite*> chosen;
    for (const Suite& suite : kSuites) {
      if (command->got_subcommand(suite.name) || command->get_subcommands().empty())
        chosen.push_back(&suite);
    }
    run_suites(*flags, chosen, context);
  });
}

}  // namespace pagejit::cli
