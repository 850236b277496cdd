#include "runtime/jit/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <stop_token>
#include <thread>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using End = SubprocessResult::End;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

SubprocessRequest shell(const std::string& script, milliseconds timeout = milliseconds(20000)) {
  return {.command = {"/bin/sh", "-c", script},
          .environment = {"PATH=/usr/bin:/bin"},
          .folder = "/",
          .timeout = timeout};
}

SubprocessResult run(const SubprocessRequest& request) {
  Result<SubprocessResult> result = run_subprocess(request);
  EXPECT_TRUE(result) << result.status().to_string();
  return result ? *result : SubprocessResult{};
}

TEST(SubprocessTest, CapturesBothOutputsAndTheExitCode) {
  const SubprocessResult result = run(shell("echo one; echo two >&2; exit 3"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "one\ntwo\n");
}

TEST(SubprocessTest, GivesOnlyTheNamedEnvironmentAndFolder) {
  TempFolder folder;
  SubprocessRequest request = shell("pwd; echo \"$A\"; echo \"${HOME-unset}\"; cat");
  request.environment.push_back("A=b c");
  request.folder = folder.path();
  EXPECT_EQ(run(request).output, folder.path() + "\nb c\nunset\n");
}

TEST(SubprocessTest, MissingProgramIsAnError) {
  SubprocessRequest request = shell("");
  request.command = {"/nonexistent/compiler", "-v"};
  Result<SubprocessResult> result = run_subprocess(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(result.status().message(),
              HasSubstr("cannot run /nonexistent/compiler: No such file"));
}

TEST(SubprocessTest, SignalIsReported) {
  const SubprocessResult result = run(shell("kill -SEGV $$"));
  EXPECT_EQ(result.end, End::kSignalled);
  EXPECT_EQ(result.signal, SIGSEGV);
}

TEST(SubprocessTest, TimeoutKillsTheWholeGroup) {
  TempFolder folder;
  const auto start = std::chrono::steady_clock::now();
  SubprocessResult result;
  // Longer where the shell did not get that far.
  for (auto timeout = milliseconds(300); result.output.empty() && timeout < milliseconds(10'000);
       timeout *= 3) {
    result = run(shell("sleep 60 & echo $! > " + folder / "pid" + "; echo begun; wait", timeout));
    EXPECT_EQ(result.end, End::kTimedOut);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  ASSERT_EQ(result.output, "begun\n");
  const pid_t grandchild = std::stoi(read_all(folder / "pid"));
  // Adopted by init, which may take its time to bury it; a zombie has no command line.
  const std::string command_line = "/proc/" + std::to_string(grandchild) + "/cmdline";
  for (int i = 0; i < 200 && !read_all(command_line).empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(read_all(command_line), "");
}

TEST(SubprocessTest, ARequestedStopKillsItBeforeItsTime) {
  std::stop_source stop;
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(100));
    stop.request_stop();
  });
  SubprocessRequest request = shell("echo begun; sleep 60 & wait");
  request.stop = stop.get_token();
  const auto start = std::chrono::steady_clock::now();
  const SubprocessResult result = run(request);
  canceller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(result.end, End::kCancelled);
}

TEST(SubprocessTest, DaemonThatKeepsTheOutputOpenIsNotWaitedFor) {
  const auto start = std::chrono::steady_clock::now();
  const SubprocessResult result = run(shell("sleep 5 & echo done"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.output, "done\n");
}

TEST(SubprocessTest, ClosedOutputIsWaitedFor) {
  const SubprocessResult result = run(shell("exec >/dev/null 2>&1; sleep 0.2; exit 5"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.exit_code, 5);
}

TEST(SubprocessTest, LongOutputIsCutAndDoesNotBlock) {
  const SubprocessResult result = run(shell("head -c 3000000 /dev/zero; echo end >&2"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.output.size(), size_t{1} << 20);
}

TEST(SubprocessTest, ChildInheritsNoDescriptor) {
  const int inheritable = open("/dev/null", O_RDONLY);  // as a careless program would
  ASSERT_GE(inheritable, 3);
  const SubprocessResult result = run(shell("ls /proc/self/fd | wc -l"));
  close(inheritable);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  EXPECT_EQ(std::stoi(result.output), 4);  // 0, 1, 2 and the folder that ls reads
#endif
}

TEST(SubprocessTest, ChildHasDefaultSignals) {
  const auto before = signal(SIGINT, SIG_IGN);
  const SubprocessResult result = run(shell("grep SigIgn /proc/self/status"));
  signal(SIGINT, before);
  const size_t number_at = result.output.find_first_of("0123456789abcdef", std::strlen("SigIgn:"));
  ASSERT_NE(number_at, std::string::npos) << result.output;
  const auto ignored = std::stoull(result.output.substr(number_at), nullptr, 16);
  EXPECT_EQ(ignored >> (SIGINT - 1) & 1, 0u) << result.output;
}

TEST(SubprocessTest, IgnoredSigchldLosesTheStatusButDoesNotHang) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  const SubprocessResult result = run(shell("echo said; exit 1"));
  signal(SIGCHLD, before);
  EXPECT_EQ(result.end, End::kUnknown);
  EXPECT_EQ(result.output, "said\n");
}

TEST(SubprocessTest, LeaksNoDescriptor) {
  const int before = num_open_fds();
  for (int i = 0; i < 5; ++i) {
    run(shell("true"));
    run(shell("sleep 9", milliseconds(1)));
    SubprocessRequest missing = shell("");
    missing.command = {"/nonexistent"};
    EXPECT_FALSE(run_subprocess(missing));
  }
  EXPECT_EQ(num_open_fds(), before);
}

}  // namespace
}  // namespace pagejit::jit
