// `pagejit version` and `pagejit doctor`: what this program is, and what it finds on this machine.
#include <CLI/CLI.hpp>
#include <memory>

#include "runtime/jit/compiler.h"
#include "tools/cli/check_session.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/version.h"

namespace pagejit::cli {
namespace {

// "name: text", or "name: none: reason".
void print_finding(CommandContext& context, const char* name, const Result<std::string>& finding) {
  context.out << name << ": ";
  if (finding) {
    context.out << *finding << "\n";
  } else {
    context.out << "none: " << finding.status().message() << "\n";
  }
}

Result<std::string> find_device(const EngineFlags& flags, const char* driver) {
  CheckSessionFlags session_flags;
  session_flags.engine = flags;
  session_flags.engine.driver = driver;
  const auto session = CheckSession::open(session_flags, [](const std::string&) {});
  if (!session) return session.status();
  return (*session)->describe_device();
}

void examine(const EngineFlags& flags, CommandContext& context) {
  const Result<EngineOptions> options = make_engine_options(flags, [](const std::string&) {});
  if (!options) return context.fail(options.status());
  context.out << version_text() << "\n";
  const Result<std::string> nvrtc = make_nvrtc_compiler(options->nvrtc_path)->identity();
  print_finding(context, "NVRTC", nvrtc);
  print_finding(context, "C++ compiler for the emulator",
                make_host_compiler(options->host_compiler, options->host_build)->identity());
  const Result<std::string> gpu = find_device(flags, "cuda");
  print_finding(context, "GPU", gpu);
  print_finding(context, "emulator", find_device(flags, "emulator"));
  const Status cache = check_cache_directory(*options);
  print_finding(context, "cache directory",
                cache ? Result<std::string>(std::string("writable")) : Result<std::string>(cache));
  if (!nvrtc) context.exit_code = ExitCode::kEnvironment;
}

}  // namespace

void add_version_command(CLI::App& app, CommandContext& context) {
  app.add_subcommand("version", "Print the version")->callback([&context] {
    context.out << version_text() << "\n";
  });
}

void add_doctor_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Print the compilers, devices and directories that are found here");
  const auto flags = std::make_shared<EngineFlags>();
  add_engine_flags(*command, flags.get(), false);
  command->footer(
      "Exit code 3 where there is no NVRTC to compile for GPUs with.\n\n"
      "Examples:\n"
      "  pagejit doctor\n"
      "  pagejit doctor --nvrtc /usr/local/cuda/lib64");
  command->callback([flags, &context] { examine(*flags, context); });
}

}  // namespace pagejit::cli
