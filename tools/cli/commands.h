// The registry of subcommands: each lives in a file of its own and adds itself to the application
// with its flags, its help with examples, and a callback that leaves an exit code in the context.
// The context outlives the application. Thread-safety: called from one thread.
#pragma once

#include "tools/cli/command_context.h"

namespace CLI {
class App;
}

namespace pagejit::cli {

void add_precompile_command(CLI::App& app, CommandContext& context);
void add_bundle_command(CLI::App& app, CommandContext& context);
void add_manifest_command(CLI::App& app, CommandContext& context);
void add_render_command(CLI::App& app, CommandContext& context);
void add_explain_command(CLI::App& app, CommandContext& context);
void add_inspect_command(CLI::App& app, CommandContext& context);
void add_check_command(CLI::App& app, CommandContext& context);
void add_demo_command(CLI::App& app, CommandContext& context);
void add_bench_command(CLI::App& app, CommandContext& context);  // tools/bench
void add_tune_command(CLI::App& app, CommandContext& context);   // where bench is built
void add_cache_command(CLI::App& app, CommandContext& context);
void add_key_command(CLI::App& app, CommandContext& context);
void add_doctor_command(CLI::App& app, CommandContext& context);
void add_version_command(CLI::App& app, CommandContext& context);
void add_help_command(CLI::App& app, CommandContext& context);
void add_generate_command(CLI::App& app, CommandContext& context);

// All of them, in the order of --help.
void add_all_commands(CLI::App& app, CommandContext& context);

// Parses and runs; answers the exit code. Nothing throws out of it.
int run_command_line(int argc, const char* const* argv, CommandContext& context);

}  // namespace pagejit::cli
