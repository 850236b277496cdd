// The program itself, as far as nothing has to be compiled: flags, sentences, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct BadCall {
  const char* what;
  std::vector<std::string> arguments;
  int exit_code;
  const char* sentence;  // a part of what is printed on standard error
};

std::vector<std::string> precompile(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "precompile");
  return flags;
}

TEST(CommandTest, EachMistakeHasItsSentenceAndExitCode) {
  const BadCall calls[] = {
      {"no subcommand", {}, 1, "A subcommand is required"},
      {"unknown flag", {"--bogus"}, 1, "unknown option --bogus; see pagejit --help"},
      {"unknown subcommand", {"frobnicate"}, 1, "unknown subcommand frobnicate"},
      {"unknown flag of a subcommand", precompile({"--bogus"}), 1, "pagejit precompile: "},
      {"no number", precompile({"--head-size", "abc"}), 1,
       "--head-size abc: must be a whole number; see pagejit precompile"},
      {"a number too large", precompile({"--head-size", "99999999999999"}), 1,
       "--head-size 99999999999999: is too large"},
      {"a real number", precompile({"--soft-cap", "x"}), 1, "--soft-cap x: must be a number;"},
      {"levels", {"check", "--cascade", "x"}, 1, "--cascade x: must be a whole number"},
      {"a data type with a slip", precompile({"--dtype", "bf61"}), 1, "did you mean bf16? See"},
      {"a driver with a slip",
       {"check", "--driver", "emulater"},
       1,
       "--driver: emulater: must be cuda, emulator or a driver library; did you mean emulator?"},
      {"a driver that is a file", {"check", "--driver", "./emulater"}, 3, "./emulater cannot be"},
      {"no kernels",
       {"tune"},
       1,
       "which kernels is not said: give --model FILE, or --head-size and --group-size"},
      {"help of nothing",
       {"help", "cahce"},
       1,
       "help: unknown subcommand cahce; did you mean cache?"},
      {"help of nothing below", {"help", "cache", "lss"}, 1, "did you mean ls?"},
      {"two commands", {"version", "doctor"}, 1, "version: unexpected argument doctor"},
      {"head size", precompile({"--head-size", "100", "--group-size", "4", "--arch", "sm_80"}), 1,
       "head_size 100: must be a multiple of 8 in [8, 256], or 512"},
      {"block size",
       precompile(
           {"--head-size", "128", "--group-size", "4", "--block-size", "0", "--arch", "sm_80"}),
       1, "block_size 0: must be in [1, 65536]"},
      {"heads",
       precompile(
           {"--head-size", "128", "--num-heads", "10", "--num-kv-heads", "3", "--arch", "sm_80"}),
       1, "--num-heads 10: must be a multiple of --num-kv-heads 3"},
      {"no architecture at all",
       precompile({"--head-size", "128", "--group-size", "4", "--arch", "hopper"}), 1,
       "--arch: target \"hopper\""},
      {"an architecture that is not served",
       precompile({"--head-size", "128", "--group-size", "4", "--arch", "sm_42"}), 1,
       "target sm_42: not known"},
      {"threads",
       precompile({"--head-size", "128", "--group-size", "4", "--arch", "sm_80", "-j", "0"}), 1,
       "--jobs 0: must be in [1, 256]"},
      {"no such model", precompile({"--model", "/nonexistent", "--arch", "sm_80"}), 4,
       "/nonexistent: no such file"},
      {"no such manifest", precompile({"--manifest", "/nonexistent.json"}), 4,
       "/nonexistent.json: no such file"},
      {"no such trace", precompile({"--trace", "/nonexistent"}), 4, "/nonexistent: no such file"},
      {"a shard that is none", precompile({"--manifest", "/nonexistent", "--shard", "3/2"}), 1,
       "--shard: shard \"3/2\": must be I/N"},
      {"two ways to look at kernels",
       precompile({"--trace", "/nonexistent", "--verify", "--reproducible"}), 1, "--verify"},
      {"nothing to do with a manifest", {"manifest"}, 1, "subcommand"},
      {"a cache below a file",
       precompile({"--head-size", "128", "--group-size", "4", "--arch", "sm_80", "--cache-dir",
                   "/dev/null/x"}),
       4, "/dev/null/x: the cache directory cannot be made: Not a directory"},
      {"no NVRTC",
       precompile({"--head-size", "128", "--group-size", "4", "--arch", "sm_80", "--nvrtc",
                   "/nonexistent"}),
       3, "/nonexistent"},
      {"tensor parallelism",
       precompile({"--model", model_file("falcon-7b"), "--tp", "2", "--arch", "sm_80"}), 1,
       "tensor parallelism 2: must divide the 71 query heads"},
      {"a dtype",
       precompile({"--model", model_file("falcon-7b"), "--dtype", "fp8", "--arch", "sm_80"}), 1,
       "--dtype: fp8_e4m3: must be bf16, f16 or f32"},
      {"render without an architecture",
       {"render", "--head-size", "128", "--group-size", "4"},
       1,
       "--arch is required"},
      {"render of nothing", {"render", "--arch", "sm_80"}, 1, "--head-size is missing"},
      {"explain",
       {"explain", "--head-size", "100", "--group-size", "4", "--arch", "sm_80"},
       1,
       "head_size 100"},
      {"key of nothing", {"key", "--arch", "sm_80"}, 1, "--head-size is missing"},
      {"key without a compiler",
       {"key", "--head-size", "128", "--group-size", "4", "--arch", "sm_80", "--nvrtc",
        "/nonexistent"},
       3,
       "/nonexistent"},
      {"cache without an action", {"cache"}, 1, "A subcommand is required"},
      {"a cache directory that is none",
       {"cache", "stats", "--cache-dir", "/dev/null"},
       4,
       "/dev/null is a device; it must be a directory"},
      {"extract without a file", {"cache", "extract", "ab"}, 1, "--output is required"},
      {"check's cascade", {"check", "--cascade", "33"}, 1, "--cascade 33: must be in [1, 32]"},
      {"check's batches", {"check", "--batches", "0"}, 1, "--batches 0: must be in [1, 1000]"},
      {"a driver", {"check", "--driver", "/nonexistent/libcuda.so"}, 3, "/nonexistent/libcuda.so"},
  };
  for (const BadCall& call : calls) {
    SCOPED_TRACE(call.what);
    const CommandResult result = CommandRunner().run(call.arguments);
    EXPECT_EQ(result.exit_code, call.exit_code);
    EXPECT_THAT(result.err, HasSubstr(call.sentence));
    EXPECT_THAT(result.err, HasSubstr("pagejit"));
  }
}

TEST(CommandTest, DamagedAndUnknownModels) {
  const CommandRunner runner;
  const auto run = [&](const std::string& text) {
    return runner.run(
        {"precompile", "--arch", "sm_80", "--model", runner.write_file("config.json", text)});
  };
  const CommandResult malformed = run("{\"model_type\": \"llama\",");
  EXPECT_EQ(malformed.exit_code, 1);
  EXPECT_THAT(malformed.err, HasSubstr("config.json: not valid JSON: parse error at line 1"));
  const CommandResult unknown = run("{\"model_type\": \"llama-ng\"}");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("model_type \"llama-ng\": not known"));
  EXPECT_EQ(run("").exit_code, 1);
}

TEST(CommandTest, FolderOfAModelWillDo) {
  const CommandRunner runner;
  runner.write_file("config.json", "{\"model_type\": \"bert\"}");
  const CommandResult result =
      runner.run({"precompile", "--arch", "sm_80", "--model", runner.folder()});
  EXPECT_THAT(result.err, HasSubstr("\"bert\": not known"));
}

TEST(CommandTest, CacheDirectoryThatCannotBeWritten) {
  // Nobody can make a file in /proc, root included.
  const CommandResult result =
      CommandRunner().run({"precompile", "--head-size", "128", "--group-size", "4", "--arch",
                           "sm_80", "--cache-dir", "/proc"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("/proc: the cache directory cannot be written: "));
}

TEST(CommandTest, CacheDirectoryThatCannotBeMade) {
  // Nor a folder.
  const CommandResult result =
      CommandRunner().run({"precompile", "--head-size", "128", "--group-size", "4", "--arch",
                           "sm_80", "--cache-dir", "/proc/pagejit"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("/proc/pagejit: the cache directory cannot be made"));
}

TEST(CommandTest, ModelOfUnsupportedLayersOnlySaysSo) {
  // The model without its layers of full attention.
  std::ifstream from(model_file("qwen3-next-80b"));
  std::string config{std::istreambuf_iterator<char>(from), {}};
  const std::string interval = "\"full_attention_interval\": 4";
  ASSERT_NE(config.find(interval), std::string::npos);
  config.replace(config.find(interval), interval.size(), "\"full_attention_interval\": 100");
  const CommandRunner runner;
  const std::string file = runner.folder() + "/pagejit-linear-layers.json";
  std::ofstream(file) << config;
  const CommandResult result = runner.run({"precompile", "--arch", "sm_80", "--model", file});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_THAT(result.out, StartsWith("pagejit-linear-layers: qwen3_next, 48 layers, bf16\n"));
  EXPECT_THAT(result.err, HasSubstr("pagejit: pagejit-linear-layers: all 48 layers: not supported "
                                    "yet: linear_attention layers\n"));
}

TEST(CommandTest, DoctorWithoutNvrtcSaysSoAndExitsWithThree) {
  const CommandResult result = CommandRunner().run({"doctor", "--nvrtc", "/nonexistent"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, HasSubstr("problem  NVRTC: none: no NVRTC at the given path"));
  EXPECT_THAT(result.out, HasSubstr("1 problem\n"));
  const CommandResult json =
      CommandRunner().run({"doctor", "--nvrtc", "/nonexistent", "--json", "-"});
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_EQ(nlohmann::json::parse(json.out)["can_compile"], false);
}

TEST(CommandTest, DoctorSeesSlipsInVariables) {
  CommandRunner runner;
  runner.set_variable("PAGEJIT_CACHEDIR", "/tmp/x");
  runner.set_variable("PAGEJIT_JIT", "maybe");
  const CommandResult result = runner.run({"doctor", "--nvrtc", "/nonexistent"});
  EXPECT_THAT(result.out, HasSubstr("warning  variable PAGEJIT_CACHEDIR: nothing reads it\n"));
  EXPECT_THAT(result.out, HasSubstr("did you mean PAGEJIT_CACHE_DIR?"));
  EXPECT_THAT(result.out, HasSubstr("problem  options: PAGEJIT_JIT=maybe: must be one of"));
}

TEST(CommandTest, DoctorKeepsTheVariablesThatAreLegal) {
  CommandRunner runner;
  runner.set_variable("HOME", runner.folder() + "/home");
  runner.set_variable("PAGEJIT_JIT", "errr");
  runner.set_variable("PAGEJIT_CACHE_DIR", runner.folder() + "/other");
  runner.set_variable("PAGEJIT_TUNED", "perhaps");
  const CommandResult result = runner.run({"doctor", "--nvrtc", "/nonexistent"});
  EXPECT_THAT(result.out, HasSubstr("problem  options: PAGEJIT_JIT=errr: must be one of"));
  EXPECT_THAT(result.out, HasSubstr("problem  options: PAGEJIT_TUNED=perhaps: must be one of"));
  EXPECT_THAT(result.out, HasSubstr("cache directory: " + runner.folder() + "/other ("));
  EXPECT_TRUE(std::filesystem::exists(runner.folder() + "/other/v1"));
  EXPECT_FALSE(std::filesystem::exists(runner.folder() + "/home"));
}

TEST(CommandTest, HelpPrintsWhatTheFlagDoes) {
  const CommandRunner runner;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"inspect"}, {"cache", "ls"}, {"help"}, {"cache", "clear"}}) {
    std::vector<std::string> by_flag = words;
    by_flag.emplace_back("--help");
    std::vector<std::string> by_word = words;
    by_word.insert(by_word.begin(), "help");
    const CommandResult help = runner.run(by_word);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_EQ(help.out, runner.run(by_flag).out);
  }
}

TEST(CommandTest, JsonFileThatCannotBeWritten) {
  const CommandResult result =
      CommandRunner().run({"precompile", "--arch", "sm_80", "--model", model_file("deepseek-v3"),
                           "--json", "/nonexistent/out.json"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/out.json: cannot be written"));
}

TEST(CommandTest, EveryHelpHasExamples) {
  const CommandRunner runner;
  EXPECT_THAT(runner.run({"--help"}).out, HasSubstr("Examples:\n  pagejit "));
  for (const char* command : {"precompile", "manifest", "render", "explain", "check", "demo",
                              "doctor", "bundle", "cache", "key"}) {
    const CommandResult result = runner.run({command, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("Usage: pagejit " + std::string(command)));
    EXPECT_THAT(result.out, HasSubstr("Examples:\n  pagejit " + std::string(command)));
    EXPECT_EQ(result.err, "");
  }
}

TEST(CommandTest, ManifestsAreExpandedCheckedAndCompared) {
  const CommandRunner runner;
  const std::string first = runner.write_file("first.json", R"({"pagejit_manifest": 1,
    "targets": ["sm_90a"], "kernels": [{"family": "top_k", "debug": [true, false]}]})");
  const std::string second = runner.write_file("second.json", R"({"pagejit_manifest": 1,
    "kernels": [{"spec": ["top_k", "copy_blocks"]}]})");
  const std::string bad = runner.write_file("bad.json", R"({"pagejit_manifest": 1,
    "kernels": [{"family": "top_k", "k": 8}]})");
  EXPECT_EQ(runner.run({"manifest", "expand", first}).out, "sm_90a top_k\nsm_90a top_k debug=1\n");
  EXPECT_EQ(runner.run({"manifest", "expand", first, "--json"}).out,
            "{\"spec\":\"top_k\",\"target\":\"sm_90a\"}\n"
            "{\"spec\":\"top_k debug=1\",\"target\":\"sm_90a\"}\n");
  EXPECT_EQ(runner.run({"manifest", "lint", first}).out, first + ": 2 kernels\n");
  EXPECT_EQ(runner.run({"manifest", "diff", first, second, "--arch", "sm_90a"}).out,
            "- sm_90a top_k debug=1\n+ sm_90a copy_blocks alignment=16\n");
  const CommandResult without_targets = runner.run({"manifest", "lint", second});
  EXPECT_EQ(without_targets.exit_code, 1);
  EXPECT_THAT(without_targets.err, HasSubstr("kernels[0].targets: missing"));
  const CommandResult refused = runner.run({"manifest", "lint", bad, "--arch", "sm_80"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("bad.json: kernels[0].k: unknown field"));
}

TEST(CommandTest, Version) {
  const CommandRunner runner;
  for (const char* spelling : {"--version", "version"}) {
    const CommandResult result = runner.run({spelling});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, testing::MatchesRegex("pagejit [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  }
}

TEST(CommandTest, RenderPrintsTheSourceForBothKindsOfTargets) {
  const CommandRunner runner;
  for (const char* arch : {"sm_90a", "host"}) {
    const CommandResult result = runner.run(
        {"render", "--head-size", "64", "--group-size", "3", "--dtype", "f16", "--arch", arch});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("pagejit_decode_f16_d64_b16_g3"));
  }
}

TEST(CommandTest, ExplainMarksItsChoice) {
  const CommandResult result = CommandRunner().run(
      {"explain", "--head-size", "64", "--group-size", "71", "--arch", "sm_80"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("chosen"));
}

TEST(TuneCommandTest, WhatCannotBeTunedIsRefusedBeforeAGpuIsLookedFor) {
  const struct {
    std::vector<std::string> flags;
    const char* sentence;
  } cases[] = {
      {{"--queries", "few", "--batch-invariant"}, "batch_invariant 1: must be 0 to be tuned"},
      {{"--queries", "few", "--custom-mask"}, "kernels with custom_mask cannot be timed yet"},
      {{"--rounds", "0"}, "--rounds 0: must be in [1, 1000]"},
      {{"--batch", "1,0"}, "--batch 0: must be in [1, 4096]"}};
  const CommandRunner runner;
  for (const auto& c : cases) {
    std::vector<std::string> arguments = {"tune", "--head-size", "64", "--group-size", "2"};
    arguments.insert(arguments.end(), c.flags.begin(), c.flags.end());
    const CommandResult result = runner.run(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.sentence));
    EXPECT_FALSE(std::filesystem::exists(runner.folder() + "/cache"));
  }
}

TEST(CommandTest, ListOfModelTypes) {
  const CommandResult result = CommandRunner().run({"precompile", "--list-models"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("\nphi-msft\n"));
}

TEST(CommandTest, BundlesToFindKernelsInAreForVerifying) {
  const CommandResult result = CommandRunner().run(precompile(
      {"--head-size", "64", "--group-size", "2", "--arch", "host", "--bundle", "a.pjb"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("--bundle requires --verify"));
}

TEST(CommandTest, ClosedPipeIsQuiet) {
  const CommandRunner runner;
  const std::string command = std::string(PAGEJIT_COMMAND) +
                              " render --head-size 64 --group-size 3 --arch sm_90a 2>" +
                              runner.folder() + "/pipe_err | head -n 1 >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::filesystem::file_size(runner.folder() + "/pipe_err"), 0u);
}

}  // namespace
}  // namespace pagejit::cli
