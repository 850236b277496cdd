// `pagejit bundle push`: the kernels of bundles, signed one by one if asked, onto the server of a
// remote. Not what an engine uploads by itself (EngineOptions::remote_write): this one waits, tells
// what became of each kernel, and fails. Thread-safety: called from one thread.
#pragma once

#include "tools/cli/command_context.h"

namespace CLI {
class App;
}

namespace pagejit::cli {

// `bundle` is the application's subcommand of that name.
void add_bundle_push_command(CLI::App& bundle, CommandContext& context);

}  // namespace pagejit::cli
