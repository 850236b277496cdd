// What every command does where its standard output is full, closed, or a pipe that nobody reads.
// Thread-safety: free functions without state.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {

// `run` runs the command, with this in the child; it must print something each time. `code`: its
// exit code where the output is not lost.
inline void expect_lost_output_is_told(
    const std::function<CommandResult(const std::function<void()>& prepare)>& run, int code = 0) {
  constexpr int kIo = 4;
  const CommandResult whole = run([] {});
  EXPECT_EQ(whole.exit_code, code) << whole.err;
  EXPECT_NE(whole.out, "") << "nothing could be lost";
  const CommandResult full = run([] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); });
  EXPECT_EQ(full.exit_code, code == 0 ? kIo : code) << full.err;
  EXPECT_THAT(full.err, testing::HasSubstr("the standard output cannot be written: No space left"));
  const CommandResult closed = run([] { close(STDOUT_FILENO); });
  EXPECT_EQ(closed.exit_code, code == 0 ? kIo : code) << closed.err;
  EXPECT_THAT(closed.err, testing::HasSubstr("the standard output cannot be written: Bad file"));
  const CommandResult unread = run([] {
    int ends[2];
    if (pipe(ends) != 0) _exit(126);
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
  });
  EXPECT_EQ(unread.exit_code, code == 0 ? 128 + SIGPIPE : code) << "as other programs end";
  EXPECT_EQ(unread.err.find("standard output"), std::string::npos) << unread.err;
}

}  // namespace pagejit::cli
