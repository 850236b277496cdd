// The program compiling with NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;

TEST(PrecompileNvrtcTest, ThreeArchitecturesInJson) {
  const CommandRunner runner;
  const std::vector<std::string> arguments = {
      "precompile", "--model",      model_file("smollm2-135m"),
      "--arch",     "sm_80,sm_90a", "--arch",
      "sm_120a",    "--json",       "-"};
  for (const char* expected : {"compiled", "cached"}) {
    const CommandResult result = runner.run(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    std::string line;
    std::vector<std::string> targets;
    while (std::getline(lines, line)) {
      const auto kernel = nlohmann::json::parse(line);
      EXPECT_EQ(kernel["result"], expected);
      EXPECT_GT(kernel["registers"], 16);
      EXPECT_GT(kernel["compile_ms"], 1);
      EXPECT_GT(kernel["image_bytes"], 1000);
      targets.push_back(kernel["target"]);
    }
    EXPECT_EQ(targets, (std::vector<std::string>{"sm_80", "sm_90a", "sm_120a"}));
  }
}

TEST(PrecompileNvrtcTest, DoctorNamesNvrtc) {
  const CommandResult result = CommandRunner().run({"doctor"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("NVRTC: nvrtc "));
  EXPECT_THAT(result.out, HasSubstr("cache directory: writable"));
}

}  // namespace
}  // namespace pagejit::cli
