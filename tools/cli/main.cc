// The pagejit command.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ostream>
#include <string>

#include "runtime/jit/environment.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_stream.h"

namespace {

std::atomic<bool> interrupted{false};  // set by the signal handler

extern "C" void on_interrupt(int) { interrupted.store(true); }
extern "C" void on_closed_pipe(int) {}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
  // A signal mask outlives exec(); whoever started this program may have blocked it.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  static_assert(std::atomic<bool>::is_always_lock_free);
  namespace cli = pagejit::cli;
  cli::reserve_standard_descriptors();
  // The second Ctrl-C ends the program at once; system calls of the first one's job go on.
  handle(SIGINT, on_interrupt, SA_RESETHAND | SA_RESTART);
  // Writing to a pipe that nobody reads then fails, and the command ends in order. Not ignored,
  // which the compilers that this program starts would inherit.
  handle(SIGPIPE, on_closed_pipe, SA_RESTART);

  cli::DescriptorBuffer out_buffer(STDOUT_FILENO);
  cli::DescriptorBuffer err_buffer(STDERR_FILENO);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err << std::unitbuf;
  const pagejit::Environment environment = pagejit::process_environment();
  cli::CommandContext context{.out = out,
                              .err = err,
                              .interrupted = interrupted,
                              .out_terminal = cli::examine_terminal(STDOUT_FILENO, environment),
                              .err_terminal = cli::examine_terminal(STDERR_FILENO, environment)};
  int code = cli::run_command_line(argc, argv, context);
  if (out_buffer.error() == EPIPE) {
    // `pagejit render ... | head` ends quietly, as other filters do.
    if (code != 0) return code;
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  } else if (out_buffer.error() != 0) {
    context.fail(pagejit::Status(pagejit::StatusCode::kCacheError,
                                 std::string("the standard output cannot be written: ") +
                                     std::strerror(out_buffer.error())));
    code = static_cast<int>(context.exit_code);
  }
  return code;
}
