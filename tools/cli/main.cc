// The pagejit command.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "tools/cli/commands.h"

namespace {

std::atomic<bool> interrupted{false};  // set by the signal handler

extern "C" void on_interrupt(int) { interrupted.store(true); }

}  // namespace

int main(int argc, char** argv) {
  static_assert(std::atomic<bool>::is_always_lock_free);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // The second Ctrl-C ends the program at once; system calls of the first one's job go on.
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  // SIGPIPE keeps its default: `pagejit render ... | head` ends quietly.

  pagejit::cli::CommandContext context{std::cout, std::cerr, isatty(STDERR_FILENO) != 0,
                                       interrupted};
  return pagejit::cli::run_command_line(argc, argv, context);
}
