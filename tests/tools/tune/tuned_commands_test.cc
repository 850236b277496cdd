// `pagejit tune` as a person runs it on a device that no kernel can run on, and what other commands
// say and do of a choice that lies in the cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/tools/cli/command_runner.h"
#include "tests/tools/cli/lost_output.h"
#include "tests/tools/tune/tune_fixture.h"

namespace pagejit {
namespace {

namespace fs = std::filesystem;
using cli::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// The files below a folder that hold an entry or a part of one.
std::vector<std::string> entries_below(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().lexically_relative(folder);
    const bool is_below = name.starts_with("v1/objects/") || name.starts_with("v1/tmp/");
    if (entry.is_regular_file() && is_below) names.push_back(name);
  }
  return names;
}

// The stub driver has one GPU, for which is compiled and which has no memory to give.
class TuneCommandTest : public ::testing::Test {
 protected:
  TuneCommandTest() {
    runner.set_variable("PAGEJIT_DRIVER", PAGEJIT_STUB_DRIVER);
    // NVRTC and its builtins lie side by side. What this one gives is the source.
    fs::create_directory(path("nvrtc"));
    fs::copy_file(PAGEJIT_STUB_NVRTC, path("nvrtc/libnvrtc.so.12"));
    fs::copy_file(PAGEJIT_STUB_BUILTINS, path("nvrtc/libnvrtc-builtins.so.12.7"));
    runner.set_variable("PAGEJIT_NVRTC", path("nvrtc"));
  }
  std::string path(const std::string& name) const { return runner.folder() + "/" + name; }
  Words words() const {
    return {"tune",     "--head-size",     "64",     "--group-size",    "2",
            "--output", path("tuned.pjb"), "--json", path("tuned.json")};
  }

  cli::CommandRunner runner;
};

TEST_F(TuneCommandTest, AKernelThatCannotBeCheckedIsNeitherTimedNorKept) {
  const CommandResult result = runner.run(words());
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" for sm_90a on Stub GPU"));
  EXPECT_THAT(result.err, HasSubstr("the planner's choice: uploading a batch: cuMemAlloc of"));
  EXPECT_THAT(result.err, Not(HasSubstr("timing")));
  EXPECT_FALSE(fs::exists(path("tuned.pjb")));
  EXPECT_THAT(entries_below(path("cache")), ::testing::IsEmpty());
  const auto json = nlohmann::json::parse(cli::CommandRunner::read_file(path("tuned.json")));
  EXPECT_EQ(json["device"], "Stub GPU");
  EXPECT_THAT(json["error"], HasSubstr("cuMemAlloc of"));
}

TEST_F(TuneCommandTest, JsonOnTheStandardOutputIsAlone) {
  Words all = words();
  all.back() = "-";
  const CommandResult result = runner.run(all);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["target"], "sm_90a");
}

TEST_F(TuneCommandTest, OutputThatIsLostIsTold) {
  Words all = words();
  all.back() = "-";
  cli::expect_lost_output_is_told(
      [&](const std::function<void()>& prepare) { return runner.run(all, prepare); }, 3);
}

TEST_F(TuneCommandTest, AnInterruptIsToldAndKeepsNothing) {
  // It waits for the command to be ready for it.
  const CommandResult result = runner.run(words(), [] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    std::raise(SIGINT);
  });
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr("interrupted: nothing was kept"));
  EXPECT_FALSE(fs::exists(path("tuned.pjb")));
  EXPECT_THAT(entries_below(path("cache")), ::testing::IsEmpty());
}

// The model with the layers of full attention so far apart.
std::string mixed_model(int full_attention_interval) {
  std::string config =
      cli::CommandRunner::read_file(std::string(PAGEJIT_MODEL_DATA_DIR) + "/qwen3-next-80b.json");
  const std::string interval = "\"full_attention_interval\": 4";
  const size_t at = config.find(interval);
  EXPECT_NE(at, std::string::npos);
  if (at == std::string::npos) return config;
  return config.replace(at, interval.size(),
                        "\"full_attention_interval\": " + std::to_string(full_attention_interval));
}

TEST_F(TuneCommandTest, AModelOfUnsupportedLayersOnlySaysSo) {
  const std::string file = runner.write_file("linear.json", mixed_model(100));
  const CommandResult result = runner.run({"tune", "--model", file});
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err, HasSubstr("pagejit: linear: all 48 layers: not supported yet: "
                                    "linear_attention layers\n"));
}

TEST_F(TuneCommandTest, UnsupportedLayersAreSaidBesideAnotherFailure) {
  const std::string file = runner.write_file("mixed.json", mixed_model(4));
  const CommandResult result = runner.run({"tune", "--model", file});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the planner's choice: "));
  EXPECT_THAT(result.err, HasSubstr("(36 of 48): not supported yet: linear_attention layers\n"));
}

TEST_F(TuneCommandTest, WithoutADriverNothingIsWritten) {
  runner.set_variable("PAGEJIT_DRIVER", "/nonexistent/libcuda.so");
  const CommandResult result = runner.run(words());
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(fs::exists(path("tuned.pjb")));
  EXPECT_FALSE(fs::exists(path("tuned.json")));
}

// A choice that was measured, by the times that the test says.
class TunedCommandsTest : public TuneRunTest {
 protected:
  void store(double us_of_other) {
    options.cache_dir = runner.folder() + "/cache";
    FakeTimer timer({100, us_of_other});
    const Result<TuneResult> result = run_tune(request(), *session, timer);
    ASSERT_TRUE(result) << result.status().to_string();
    ASSERT_TRUE(store_choice(*result, *open_disk()));
    record = result->record;
  }
  CommandResult run(Words words, const Words& more = {}) const {
    words.insert(words.end(), {"--head-size", "64", "--group-size", "2", "--arch", record.target});
    words.insert(words.end(), more.begin(), more.end());
    return runner.run(words);
  }
  // The keys that `bundle ls` names.
  std::set<std::string> keys_of(const std::string& bundle) const {
    std::set<std::string> keys;
    std::istringstream lines(runner.run({"bundle", "ls", bundle, "--json"}).out);
    for (std::string line; std::getline(lines, line);) {
      keys.insert(nlohmann::json::parse(line)["key"].get<std::string>());
    }
    return keys;
  }

  cli::CommandRunner runner;
  TunedRecord record;
};

TEST_F(TunedCommandsTest, ExplainKeyAndPrecompileKnowTheRecord) {
  store(80);
  const std::string line =
      "tuned on " + record.device + ": " + record.tile +
      ", 1.25 times as fast; taken where PAGEJIT_TUNED is on: " + record.image + "\n";
  const CommandResult explained = run({"explain"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr(line));
  EXPECT_THAT(run({"key"}, {"--explain"}).out, HasSubstr(line));
  EXPECT_THAT(run({"key"}).out, Not(HasSubstr("tuned")));

  const std::string name = encode_tuned_record(record).key.name();
  for (const bool is_on : {false, true}) {
    runner.set_variable("PAGEJIT_TUNED", is_on ? "on" : "off");
    const std::string bundle = runner.folder() + (is_on ? "/on.pjb" : "/off.pjb");
    const CommandResult made = run({"precompile"}, {"--output", bundle});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("0 compiled, 1 cached"));
    const std::set<std::string> keys = keys_of(bundle);
    EXPECT_EQ(keys.size(), is_on ? 3u : 1u) << "the planner's; the choice and the record";
    EXPECT_EQ(keys.contains(name), is_on);
    EXPECT_EQ(keys.contains(record.image), is_on);
  }
  // The choice's image is gone: the record is shown, with the reason why it is not taken.
  ASSERT_EQ(fs::remove(runner.folder() + "/cache/v1/objects/" + record.image.substr(0, 2) + "/" +
                       record.image + ".pjk"),
            true);
  EXPECT_THAT(run({"explain"}).out, HasSubstr("times as fast; not taken: "));
  const std::string bundle = runner.folder() + "/without.pjb";
  ASSERT_EQ(run({"precompile"}, {"--output", bundle}).exit_code, 0);
  EXPECT_EQ(keys_of(bundle).size(), 1u);
}

TEST_F(TunedCommandsTest, ARecordThatChangesNothingIsShownAndStaysBehind) {
  store(100);
  runner.set_variable("PAGEJIT_TUNED", "on");
  EXPECT_THAT(run({"explain"}).out,
              HasSubstr("tuned on " + record.device + ": the planner's choice was not beaten\n"));
  const std::string bundle = runner.folder() + "/on.pjb";
  ASSERT_EQ(run({"precompile"}, {"--output", bundle}).exit_code, 0);
  EXPECT_EQ(keys_of(bundle).size(), 1u);
}

}  // namespace
}  // namespace pagejit
