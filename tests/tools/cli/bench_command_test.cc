// `pagejit bench` as far as no GPU is needed: comparing two runs, its outputs, and the programs
// that measure the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(BenchCommandTest, TwoRunsOfABenchmarkAreCompared) {
  const CommandRunner runner;
  const auto run_of = [&](const std::string& name, double value) {
    const nlohmann::json result = {{"suite", "decode"},
                                   {"name", "GQA"},
                                   {"shape", {{"num_seqs", 8}}},
                                   {"value", value},
                                   {"unit", "us"},
                                   {"better", "lower"},
                                   {"noise", 0.01},
                                   {"figures", nlohmann::json::object()}};
    return runner.write_file(name, nlohmann::json{{"pagejit_bench", 1},
                                                  {"environment", nlohmann::json::object()},
                                                  {"results", {result}}}
                                       .dump());
  };
  const std::string a = run_of("a.json", 100);
  const std::string b = run_of("b.json", 110);
  const CommandResult look = runner.run({"bench", "--compare", a, b});
  EXPECT_EQ(look.exit_code, 0) << look.err;
  EXPECT_THAT(look.out, HasSubstr("1.100  2.0 %  worse\n1 cases: 1 worse, 0 better"));
  const CommandResult gate = runner.run({"bench", "--compare", a, b, "--threshold", "5"});
  EXPECT_EQ(gate.exit_code, 5);
  EXPECT_THAT(gate.err, HasSubstr("decode GQA: worse by 10.0 %, more than --threshold 5"));
  EXPECT_EQ(runner.run({"bench", "--compare", a, b, "--threshold", "12"}).exit_code, 0);
  EXPECT_EQ(runner.run({"bench", "--compare", b, a, "--threshold", "5"}).exit_code, 0);
  const std::string svg = runner.folder() + "/compared.svg";
  const CommandResult json = runner.run({"bench", "--compare", a, b, "--json", "-", "--svg", svg});
  EXPECT_EQ(nlohmann::json::parse(json.out)["differences"][0]["verdict"], "worse");
  EXPECT_THAT(CommandRunner::read_file(svg), StartsWith("<svg"));
  EXPECT_EQ(runner.run({"bench", "--compare", a, "/nonexistent"}).exit_code, 4);
  EXPECT_EQ(runner.run({"bench", "--threshold", "5"}).exit_code, 1);
  for (const char* threshold : {"nan", "inf", "-1", "5x", ""}) {
    const CommandResult refused =
        runner.run({"bench", "--compare", a, b, "--threshold", threshold});
    EXPECT_EQ(refused.exit_code, 1) << threshold;
    EXPECT_EQ(refused.out, "") << threshold;
    EXPECT_THAT(refused.err, HasSubstr("must be a number from 0 on")) << threshold;
  }
}

TEST(BenchCommandTest, TwoOutputsOfABenchmarkInOnePlaceAreRefused) {
  const CommandRunner runner;
  const std::string file = runner.folder() + "/output";
  const std::string same = runner.folder() + "/./output";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"decode"},
        {"host"},
        {"--compare", "/nonexistent/a", "/nonexistent/b"}}) {
    const auto call = [&](const std::string& json, const std::string& svg) {
      std::vector<std::string> all = {"bench", "--json", json, "--svg", svg};
      all.insert(all.end(), words.begin(), words.end());
      return runner.run(all);
    };
    const CommandResult stream = call("-", "-");
    EXPECT_EQ(stream.exit_code, 1) << words[0];
    EXPECT_EQ(stream.out, "") << words[0];
    EXPECT_THAT(stream.err, HasSubstr("--json - and --svg - both take the standard output"));
    for (const std::string& svg : {file, same}) {
      const CommandResult one = call(file, svg);
      EXPECT_EQ(one.exit_code, 1) << words[0];
      EXPECT_THAT(one.err, HasSubstr("--json and --svg both write " + file));
      EXPECT_FALSE(std::filesystem::exists(file));
    }
  }
}

TEST(BenchCommandTest, ProgramsOfBenchmarksRefuseWhatTheyCannotFollow) {
  const CommandRunner runner;
  for (const std::string suite : {"host", "store"}) {
    for (const std::vector<std::string>& flag :
         {std::vector<std::string>{"--cache-dir", runner.folder()},
          {"--jobs", "2"},
          {"--driver", "cuda"}}) {
      std::vector<std::string> words = {"bench", suite};
      words.insert(words.end(), flag.begin(), flag.end());
      const CommandResult result = runner.run(words);
      EXPECT_EQ(result.exit_code, 1) << flag[0];
      EXPECT_EQ(result.out, "") << flag[0];
      EXPECT_THAT(result.err, HasSubstr(flag[0] + ": is for suites on a GPU; bench " + suite +
                                        " takes --nvrtc, --json and --svg"));
    }
  }
}

// Programs in their place print what they were given.
TEST(BenchCommandTest, ProgramsOfBenchmarksAreGivenTheCompilerThatIsNamed) {
  CommandRunner runner;
  const std::string bin = runner.folder() + "/bin";
  std::filesystem::create_directory(bin);
  std::filesystem::create_directory(runner.folder() + "/lib");
  std::filesystem::copy_file(PAGEJIT_COMMAND, bin + "/pagejit");
  runner.write_file("bin/libpagejit-stub-driver.so", "");
  runner.write_file("lib/libpagejit.so", "");
  for (const std::string suite : {"host", "store"}) {
    runner.write_script("bin/pagejit-bench-" + suite,
                        "for word; do last=$word; done\necho \"the compiler: $last\"");
    const auto printed = [&](const std::string& call) {
      const std::string out = runner.folder() + "/printed";
      const int status = std::system((call + " >" + out).c_str());
      EXPECT_EQ(status, 0) << call;
      return CommandRunner::read_file(out);
    };
    const std::string call = bin + "/pagejit bench " + suite;
    EXPECT_EQ(printed("PAGEJIT_NVRTC=/of/variable " + call), "the compiler: /of/variable\n");
    EXPECT_EQ(printed("PAGEJIT_NVRTC=/of/variable " + call + " --nvrtc /of/flag"),
              "the compiler: /of/flag\n");
    EXPECT_EQ(printed("PAGEJIT_NVRTC= " + call), "the compiler: \n");
  }
}

TEST(BenchCommandTest, BenchmarksMeasureTheCompilerThatIsNamed) {
  const CommandRunner runner;
  const auto path = [&](const std::string& name) { return runner.folder() + "/" + name; };
  const std::string missing = path("compiler");
  const CommandResult host = runner.run({"bench", "host", "--nvrtc", missing});
  EXPECT_EQ(host.exit_code, 5) << host.err;
  EXPECT_THAT(host.err, HasSubstr("no NVRTC at the given path " + missing));
  // What `bench store` starts, without the minutes before it.
  const std::string program =
      std::filesystem::path(PAGEJIT_COMMAND).parent_path().string() + "/pagejit-bench-store";
  const std::string call =
      program + " --make " + path("cache") + " " + missing + " 1 1 1 >" + path("made");
  EXPECT_NE(std::system(call.c_str()), 0);
  EXPECT_THAT(CommandRunner::read_file(path("made")),
              HasSubstr("no NVRTC at the given path " + missing));
}

}  // namespace
}  // namespace pagejit::cli
