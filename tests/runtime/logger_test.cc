#include "runtime/logger.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pagejit {
namespace {

TEST(LoggerTest, LinesBelowTheLevelAreDropped) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  const Logger logger(LogLevel::kWarning, [&](LogLevel level, std::string_view line) {
    lines.emplace_back(level, line);
  });
  logger.debug("debug");
  logger.info("info");
  logger.warning("warning {}");  // not a format string
  logger.error("error");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], std::make_pair(LogLevel::kWarning, std::string("warning {}")));
  EXPECT_EQ(lines[1], std::make_pair(LogLevel::kError, std::string("error")));
}

TEST(LoggerTest, OffIsSilent) {
  int calls = 0;
  const Logger logger(LogLevel::kOff, [&](LogLevel, std::string_view) { ++calls; });
  logger.error("error");
  EXPECT_EQ(calls, 0);
}

TEST(LoggerTest, AThrowingCallbackDoesNotReachTheCaller) {
  const Logger logger(LogLevel::kDebug,
                      [](LogLevel, std::string_view) { throw std::runtime_error("callback"); });
  logger.error("error");
}

TEST(LoggerTest, WithoutACallbackLinesGoToStandardError) {
  testing::internal::CaptureStderr();
  {
    const Logger logger(LogLevel::kInfo, {});
    logger.info("a line");
    logger.debug("not this one");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[pagejit] info: a line\n");
}

}  // namespace
}  // namespace pagejit
