// The program compiling with NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/cli/command_runner.h"
#include "tests/tools/cli/lost_output.h"

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

TEST(DoctorNvrtcTest, NamesNvrtcAndTriesTheCacheDirectory) {
  const CommandResult result = CommandRunner().run({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("ok       NVRTC: nvrtc "));
  EXPECT_THAT(result.out, HasSubstr(", build-id "));
  EXPECT_THAT(result.out, HasSubstr(" sm_90a "));
  EXPECT_THAT(result.out, HasSubstr("ok       cache writes: "));
  EXPECT_THAT(result.out, HasSubstr("ok       cache locks: "));
  EXPECT_THAT(result.out, HasSubstr(", 0 problems\n"));
}

TEST(DoctorNvrtcTest, OutputThatIsLostIsTold) {
  const CommandRunner runner;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"doctor"}, {"doctor", "--json", "-"}}) {
    expect_lost_output_is_told(
        [&](const std::function<void()>& prepare) { return runner.run(words, prepare); });
  }
}

TEST(DoctorNvrtcTest, JsonHasWhatTheTextHas) {
  const CommandResult result = CommandRunner().run({"doctor", "--json", "-"});
  EXPECT_EQ(result.exit_code, 0);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["can_compile"], true);
  EXPECT_EQ(json["problems"], 0);
  bool found = false;
  for (const auto& finding : json["findings"]) {
    if (finding["topic"] != "NVRTC") continue;
    found = true;
    EXPECT_EQ(finding["level"], "ok");
    EXPECT_FALSE(finding["values"]["builtins_build_id"].get<std::string>().empty());
    EXPECT_THAT(finding["values"]["targets"], testing::Contains("sm_90a"));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace pagejit::cli
