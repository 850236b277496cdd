#include "tools/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace pagejit::cli {
namespace {

TEST(ProgressTest, PlainLinesElsewhere) {
  std::ostringstream stream;
  {
    Progress progress(stream, {}, 12);
    progress.step("first");
    progress.message("warning: x");
    progress.step("second");
  }
  EXPECT_EQ(stream.str(), "[ 1/12] first\nwarning: x\n[ 2/12] second\n");
}

TEST(ProgressTest, BarOnATerminalIsRemovedAtTheEnd) {
  std::ostringstream stream;
  {
    Progress progress(stream, {.is_terminal = true}, 4);
    progress.step("first");
  }
  const std::string text = stream.str();
  EXPECT_NE(text.find("[######..................] 1/4 first"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST(ProgressTest, MessageOnATerminalStandsAboveTheBar) {
  std::ostringstream stream;
  Progress progress(stream, {.is_terminal = true}, 2);
  progress.step("first");
  stream.str("");
  progress.message("warning: x");
  EXPECT_EQ(stream.str(), "\r\x1b[Kwarning: x\n\r\x1b[K[############............] 1/2 first");
}

TEST(ProgressTest, NothingToDoDrawsNothing) {
  std::ostringstream stream;
  { Progress progress(stream, {.is_terminal = true}, 0); }
  EXPECT_EQ(stream.str(), "");
}

}  // namespace
}  // namespace pagejit::cli
