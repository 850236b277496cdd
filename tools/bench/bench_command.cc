// `pagejit bench`: decode, v1v2 and paging on a GPU, host anywhere.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tools/bench/decode_bench.h"
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
  std::vector<DecodeBenchCase> (*cases)();
};

constexpr Suite kSuites[] = {
    {"decode", "Decode: caches rotated out of the L2, shuffled blocks, graph replay",
     &decode_cases},
    {"v1v2", "One pass over a sequence (as vLLM's v1) and split (as its v2)", &v1v2_cases},
    {"paging", "What paging costs, against block ids that count up", &paging_cases},
};

std::string format(const char* pattern, double value) {
  char text[40];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

// One suite's table, and its lines of JSON.
Status run_suite(const Suite& suite, DecodeBench& bench, CommandContext& context,
                 std::vector<std::string>* json) {
  const Result<double> read = bench.read_bandwidth();
  if (!read) return read.status();
  context.out << suite.title << "\n"
              << bench.device_name() << "; a kernel that only reads: " << format("%.2f", *read)
              << " TB/s\n";
  TextTable table({{"case"},
                   {"batch", Align::kRight},
                   {"tokens", Align::kRight},
                   {"spec"},
                   {"splits", Align::kRight},
                   {"us", Align::kRight},
                   {"min us", Align::kRight},
                   {"TB/s", Align::kRight},
                   {"of read", Align::kRight},
                   {"of contiguous", Align::kRight}});
  double contiguous_us = 0;
  for (const DecodeBenchCase& c : suite.cases()) {
    if (context.interrupted.load()) return Status(StatusCode::kCancelled, "interrupted");
    const Result<DecodeBenchResult> r = bench.run(c);
    if (!r) return r.status();
    if (!c.shuffled_blocks) contiguous_us = r->median_us;
    table.add_row(
        {c.name, std::to_string(c.num_seqs), std::to_string(c.seq_len), canonical_text(c.spec),
         std::to_string(r->num_splits), format("%.2f", r->median_us), format("%.2f", r->min_us),
         format("%.3f", r->terabytes_per_s()),
         format("%.1f %%", 100 * r->terabytes_per_s() / *read),
         contiguous_us > 0 ? format("%+.1f %%", 100 * (r->median_us / contiguous_us - 1)) : ""});
    json->push_back(to_json(*r, *read));
  }
  context.out << table.to_string() << "\n";
  return Status::ok();
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
  const auto bench = DecodeBench::create(**engine, **session, *options);
  if (!bench) return context.fail(bench.status(), ExitCode::kEnvironment);

  std::vector<std::string> results;
  Status status;
  for (const Suite* suite : suites) {
    if (status) status = run_suite(*suite, **bench, context, &results);
  }
  // What was measured is kept even where a later case failed.
  if (!flags.json.empty()) {
    std::string text = "{\"device\": \"" + (*bench)->device_name() + "\", \"results\": [\n";
    for (size_t i = 0; i < results.size(); ++i)
      text += "  " + results[i] + (i + 1 < results.size() ? ",\n" : "\n");
    text += "]}\n";
    if (const Status written = write_output(flags.json, text, context.out); !written)
      context.fail(written);
  }
  if (!status) context.fail(status);
}

void run_host(CommandContext& context) {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path program = here / "pagejit-bench-host";
  const std::filesystem::path stub = here / "libpagejit-stub-driver.so";
  const std::filesystem::path library = here / ".." / "lib" / "libpagejit.so";
  for (const auto& file : {program, stub, library}) {
    if (std::filesystem::exists(file, error)) continue;
    return context.fail(
        Status(StatusCode::kNotFound,
               file.filename().string() +
                   " is not beside this command; `bench host` needs a build with tests"),
        ExitCode::kEnvironment);
  }
  std::vector<std::string> words = {program, program, stub, library};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  context.out.flush();
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0 ||
      waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) {
    return context.fail(Status(StatusCode::kInternal, "pagejit-bench-host could not be run"));
  }
  context.exit_code = static_cast<ExitCode>(WEXITSTATUS(status));
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
      "Without a suite: decode, v1v2 and paging. A case is timed only after its results were "
      "checked. The emulator has no\n"
      "times worth printing and is refused.\n"
      "Examples:\n"
      "  pagejit bench decode\n"
      "  pagejit bench --json results.json\n"
      "  pagejit bench host");
  for (const Suite& suite : kSuites) {
    command->add_subcommand(suite.name, suite.title)->fallthrough();
  }
  command->add_subcommand("host",
                          "What compiling, preparing and launching cost the host; needs no GPU");
  command->callback([flags, command, &context] {
    if (command->got_subcommand("host")) return run_host(context);
    std::vector<const Suite*> chosen;
    for (const Suite& suite : kSuites) {
      if (command->got_subcommand(suite.name) || command->get_subcommands().empty())
        chosen.push_back(&suite);
    }
    run_suites(*flags, chosen, context);
  });
}

}  // namespace pagejit::cli
