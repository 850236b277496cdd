#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/help_format.h"
#include "tools/cli/version.h"
#include "tools/cli/word_checks.h"

namespace pagejit::cli {
namespace {

// CLI11's sentences may end with a full stop, or have line breaks between several complaints.
std::string one_sentence(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

void complain(const CLI::App& app, const std::string& sentence, CommandContext& context) {
  const std::string program = full_name(innermost_command(app));
  context.complain(program + ":",
                   sentence + (sentence.ends_with('?') ? " See " : "; see ") + program + " --help");
  context.exit_code = ExitCode::kUsage;
}

void parse_and_run(int argc, const char* const* argv, CommandContext& context) {
  CLI::App app("Makes, checks and measures kernels for paged attention.", "pagejit");
  app.set_version_flag("--version", version_text());
  app.formatter(std::make_shared<HelpFormatter>(context.out_terminal));
  app.footer(std::string("Examples:\n"
                         "  pagejit precompile --model Llama-3.1-8B/config.json --arch sm_90a\n"
                         "  pagejit demo\n"
                         "  pagejit precompile --help\n\n") +
             kExitCodeHelp);
  add_all_commands(app, context);
  try {
    app.parse(argc, argv);
    // Not require_subcommand(1), which would complain of that instead of an unknown flag.
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A subcommand");
  } catch (const CLI::CallForHelp&) {
    context.out << app.help();  // of the subcommand where one was named before --help
  } catch (const CLI::CallForAllHelp&) {
    context.out << app.help("", CLI::AppFormatMode::All);
  } catch (const CLI::CallForVersion&) {
    context.out << version_text() << "\n";
  } catch (const CLI::ParseError& error) {
    // What is required may be missing because its name is misspelt.
    const std::string unknown = unknown_word(app);
    const auto* conversion = dynamic_cast<const CLI::ConversionError*>(&error);
    const std::string sentence =
        conversion == nullptr ? error.what() : malformed_value(app, *conversion);
    complain(app, unknown.empty() ? one_sentence(sentence) : unknown, context);
  }
}

}  // namespace

void add_all_commands(CLI::App& app, CommandContext& context) {
  // One at a time: the words behind `help` name a command that is not to run.
  app.require_subcommand(0, 1);
  add_precompile_command(app, context);
  add_manifest_command(app, context);
  add_bundle_command(app, context);
  add_render_command(app, context);
  add_explain_command(app, context);
  add_inspect_command(app, context);
  add_check_command(app, context);
  add_demo_command(app, context);
#ifdef PAGEJIT_WITH_BENCH
  add_bench_command(app, context);
  add_tune_command(app, context);
#endif
  add_cache_command(app, context);
  add_key_command(app, context);
  add_doctor_command(app, context);
  add_version_command(app, context);
  add_help_command(app, context);
  add_generate_command(app, context);
}

int run_command_line(int argc, const char* const* argv, CommandContext& context) {
  try {
    parse_and_run(argc, argv, context);
  } catch (const std::exception& error) {
    context.fail(Status(StatusCode::kInternal, std::string("unexpected: ") + error.what()));
  }
  if (context.interrupted.load()) {
    context.exit_code = worse(context.exit_code, ExitCode::kInterrupted);
    if (!context.told_interrupt) context.fail(Status(StatusCode::kCancelled, "interrupted"));
  }
  context.out.flush();
  return static_cast<int>(context.exit_code);
}

}  // namespace pagejit::cli
