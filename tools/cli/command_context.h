// CommandContext: what every subcommand is given: where to write, whether to stop, and where to
// leave its exit code. Thread-safety: `interrupted` may be read from any thread; the rest belongs
// to the command's thread.
#pragma once

#include <atomic>
#include <ostream>
#include <string>

#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"

namespace pagejit::cli {

struct CommandContext {
  std::ostream& out;  // results
  std::ostream& err;  // progress, warnings and errors
  // Set once the user pressed Ctrl-C: finish what is running, start nothing more.
  const std::atomic<bool>& interrupted;
  Terminal out_terminal = {};
  Terminal err_terminal = {};
  ExitCode exit_code = ExitCode::kOk;
  bool told_interrupt = false;  // else it is told at the end

  // "speaker: sentence", wrapped and coloured where that is a terminal. `speaker` ends in a colon.
  void complain(const std::string& speaker, const std::string& sentence) {
    const std::string text = fitted(speaker + " " + sentence, err_terminal);
    err << styled(speaker, Style::kBad, err_terminal) << text.substr(speaker.size()) << "\n";
  }

  // "pagejit: sentence" for what is no failure.
  void note(const std::string& sentence) {
    err << fitted("pagejit: " + sentence + "\n", err_terminal);
  }

  // Prints "pagejit: sentence", with the detail (a compile log) below it, and keeps the worse exit
  // code.
  void fail(const Status& status) { fail(status, exit_code_of(status)); }
  void fail(const Status& status, ExitCode code) {
    complain("pagejit:", status.message());
    if (!status.detail().empty()) err << status.detail() << "\n";
    exit_code = worse(exit_code, code);
    if (status.code() == StatusCode::kCancelled) told_interrupt = true;
  }
};

}  // namespace pagejit::cli
