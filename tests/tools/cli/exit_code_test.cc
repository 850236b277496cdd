#include "tools/cli/exit_code.h"

#include <gtest/gtest.h>

namespace pagejit::cli {
namespace {

TEST(ExitCodeTest, EveryStatusHasOne) {
  const std::pair<StatusCode, int> expected[] = {
      {StatusCode::kOk, 0},
      {StatusCode::kInvalidArgument, 1},
      {StatusCode::kUnsupported, 1},
      {StatusCode::kNotFound, 1},
      {StatusCode::kCompileFailed, 2},
      {StatusCode::kCompilerUnavailable, 3},
      {StatusCode::kDriverUnavailable, 3},
      {StatusCode::kDriverError, 3},
      {StatusCode::kCacheError, 4},
      {StatusCode::kDataCorrupt, 4},
      {StatusCode::kWorkspace, 2},
      {StatusCode::kDeviceCheckFailed, 5},
      {StatusCode::kCancelled, 6},
      {StatusCode::kInternal, 2},
      {StatusCode::kDenied, 3},
  };
  for (const auto& [code, exit_code] : expected) {
    EXPECT_EQ(static_cast<int>(exit_code_of(Status(code, "x"))), exit_code)
        << status_code_name(code);
  }
}

TEST(ExitCodeTest, BundlesHaveTheirOwnForDamageAndForAMissingLibrary) {
  const auto code_of = [](StatusCode code) { return bundle_exit_code_of(Status(code, "x")); };
  EXPECT_EQ(code_of(StatusCode::kDataCorrupt), ExitCode::kVerification);
  EXPECT_EQ(code_of(StatusCode::kUnsupported), ExitCode::kEnvironment);
  EXPECT_EQ(code_of(StatusCode::kCacheError), ExitCode::kIo);
  EXPECT_EQ(code_of(StatusCode::kInvalidArgument), ExitCode::kUsage);
}

TEST(ExitCodeTest, TheWorseReasonWins) {
  EXPECT_EQ(worse(ExitCode::kOk, ExitCode::kOk), ExitCode::kOk);
  EXPECT_EQ(worse(ExitCode::kOk, ExitCode::kUnsupportedLayers), ExitCode::kUnsupportedLayers);
  EXPECT_EQ(worse(ExitCode::kUnsupportedLayers, ExitCode::kKernelFailed), ExitCode::kKernelFailed);
  EXPECT_EQ(worse(ExitCode::kKernelFailed, ExitCode::kEnvironment), ExitCode::kEnvironment);
  EXPECT_EQ(worse(ExitCode::kEnvironment, ExitCode::kInterrupted), ExitCode::kInterrupted);
  EXPECT_EQ(worse(ExitCode::kVerification, ExitCode::kIo), ExitCode::kVerification);
}

TEST(ExitCodeTest, HelpNamesAllEight) {
  const std::string help = kExitCodeHelp;
  for (const char digit : {'0', '1', '2', '3', '4', '5', '6', '7'}) {
    EXPECT_NE(help.find(digit), std::string::npos) << digit;
  }
}

}  // namespace
}  // namespace pagejit::cli
