// Runs one program to its end, without a shell and without fork() in this process: posix_spawn,
// output captured, killed with all its children at a deadline or when asked to. Thread-safety: a
// free function; the child inherits no descriptor of this process.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "pagejit/status.h"

namespace pagejit::jit {

struct SubprocessRequest {
  std::vector<std::string> command;      // the program as a path, then its arguments
  std::vector<std::string> environment;  // "NAME=value"; the child's whole environment
  std::string folder;                    // working folder; "" = "/"
  std::chrono::milliseconds timeout{0};
  std::stop_token stop = {};  // ends it early, as at the deadline
};

struct SubprocessResult {
  enum class End { kExited, kSignalled, kTimedOut, kCancelled, kUnknown };
  // kUnknown: it ended, but another part of this process took its status (SIGCHLD ignored, or
  // wait() for any child).
  End end = End::kUnknown;
  int exit_code = 0;
  int signal = 0;
  std::string output;  // standard output and error as they came, at most 1 MiB of it
};

// kCompilerUnavailable where the program cannot be started, with the reason.
Result<SubprocessResult> run_subprocess(const SubprocessRequest& request);

}  // namespace pagejit::jit
