// CommandContext: what every subcommand is given: where to write, whether to stop, and where to
// leave its exit code. Thread-safety: `interrupted` may be read from any thread; the rest belongs
// to the command's thread.
#pragma once

#include <atomic>
#include <ostream>

#include "tools/cli/exit_code.h"

namespace pagejit::cli {

struct CommandContext {
  std::ostream& out;  // results
  std::ostream& err;  // progress, warnings and errors
  bool err_is_terminal = false;
  // Set once the user pressed Ctrl-C: finish what is running, start nothing more.
  const std::atomic<bool>& interrupted;
  ExitCode exit_code = ExitCode::kOk;

  // Prints "pagejit: sentence", with the detail (a compile log) below it, and keeps the worse exit
  // code.
  void fail(const Status& status) { fail(status, exit_code_of(status)); }
  void fail(const Status& status, ExitCode code) {
    err << "pagejit: " << status.message() << "\n";
    if (!status.detail().empty()) err << status.detail() << "\n";
    exit_code = worse(exit_code, code);
  }
};

}  // namespace pagejit::cli
