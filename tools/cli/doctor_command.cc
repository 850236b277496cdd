// `pagejit doctor`: what this program finds on this machine, and what to do about what is wrong.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/commands.h"
#include "tools/cli/doctor_checks.h"
#include "tools/cli/engine_flags.h"
#include "tools/cli/output_file.h"
#include "tools/cli/version.h"

namespace pagejit::cli {
namespace {

struct DoctorFlags {
  EngineFlags engine;
  std::string json;
};

std::vector<std::string> environment_entries() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

void examine(const DoctorFlags& flags, CommandContext& context) {
  DoctorReport report;
  EngineOptions options;
  for (const Status& failure : read_engine_options(
           flags.engine, [](const std::string&) {}, &options)) {
    report.problem("options", failure.message(),
                   "no engine can be made with it; the rest is as if it were not set");
    context.exit_code = exit_code_of(failure);
  }
  examine_variables(environment_entries(), report);
  examine_cache(options, report);  // before libraries are opened: it forks
  const FoundNvrtc nvrtc = examine_nvrtc(options, report);
  const std::vector<int> sms = examine_devices(options, nvrtc, report);
  examine_host_compiler(options, report);
  examine_optional_libraries(options, report);
  examine_bundles(options, sms, report);
  examine_read_only_dirs(options, report);
  examine_remote(options, report);
  if (!nvrtc.is_usable) context.exit_code = worse(context.exit_code, ExitCode::kEnvironment);

  if (flags.json != "-")
    context.out << version_text() << "\n" << report.to_text(context.out_terminal);
  if (flags.json.empty()) return;
  const Status written =
      write_output(flags.json, report.to_json(version_text(), nvrtc.is_usable), context.out);
  if (!written) context.fail(written);
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Print which compilers, devices and directories are found, and what is wrong");
  const auto flags = std::make_shared<DoctorFlags>();
  add_engine_flags(*command, &flags->engine, true);
  command
      ->add_option("--json", flags->json,
                   "Write the findings as JSON too; \"-\": to standard output, instead of text")
      ->type_name("FILE");
  command->footer(
      "Exit code 3 where there is no NVRTC to compile for GPUs with; 1 where a variable is\n"
      "malformed; else 0: warnings and other problems do not change it.\n\n"
      "Examples:\n"
      "  pagejit doctor\n"
      "  pagejit doctor --nvrtc /usr/local/cuda/lib64\n"
      "  pagejit doctor --json - | jq '.findings[] | select(.level != \"ok\")'");
  command->callback([flags, &context] { examine(*flags, context); });
}

}  // namespace pagejit::cli
