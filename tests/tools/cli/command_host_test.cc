// The program compiling for the host and launching on the CPU emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

using testing::HasSubstr;

TEST(PrecompileHostTest, SecondRunFindsItsKernels) {
  const CommandRunner runner;
  const std::vector<std::string> arguments = {"precompile", "--model", model_file("llama-3.2-1b"),
                                              "--arch", "host"};
  const CommandResult first = runner.run(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("1 kernel: 1 compiled, 0 cached"));
  EXPECT_THAT(first.err, HasSubstr("[1/1] compiled host bf16 d64 b16 g4"));
  const CommandResult second = runner.run(arguments);
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_THAT(second.out, HasSubstr("1 kernel: 0 compiled, 1 cached"));
}

TEST(PrecompileHostTest, SupportedLayersOfAMixedModelAreServed) {
  const CommandResult result = CommandRunner().run(
      {"precompile", "--model", model_file("qwen3-next-80b"), "--arch", "host"});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_THAT(result.out, HasSubstr("1 kernel: 1 compiled"));
  EXPECT_THAT(result.err, HasSubstr("(36 of 48): not supported yet: linear_attention layers"));
}

TEST(PrecompileHostTest, CompilesWhereProgramsMayNot) {
  CommandRunner runner;
  runner.set_variable("PAGEJIT_JIT", "error");
  const std::vector<std::string> check = {"check",    "--head-size", "64",    "--group-size",
                                          "3",        "--arch",      "sm_80", "--driver",
                                          "emulator", "--batches",   "1"};
  const CommandResult cold = runner.run(check);
  EXPECT_EQ(cold.exit_code, 3);
  EXPECT_THAT(cold.err, HasSubstr("PAGEJIT_JIT (EngineOptions::jit) is error"));
  EXPECT_THAT(cold.err, HasSubstr("pagejit precompile --arch host_80"));
  const CommandResult made =
      runner.run({"precompile", "--head-size", "64", "--group-size", "3", "--arch", "host_80"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("1 kernel: 1 compiled"));
  const CommandResult warm = runner.run(check);
  EXPECT_EQ(warm.exit_code, 0) << warm.err;
}

TEST(TuneHostTest, TheEmulatorsTimesAreRefused) {
  const CommandRunner runner;
  const CommandResult result = runner.run({"tune", "--head-size", "64", "--group-size", "3",
                                           "--driver", "emulator", "-o", "tuned.pjb"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("the emulator's times say nothing of a GPU"));
  EXPECT_EQ(result.out, "");
}

// Eight kernels, one at a time: interrupted after the first, which is kept.
TEST(PrecompileHostTest, InterruptKeepsWhatIsDone) {
  const CommandRunner runner;
  const std::vector<std::string> arguments = {"precompile",
                                              "-j",
                                              "1",
                                              "--arch",
                                              "host,host_80",
                                              "--model",
                                              model_file("llama-3.2-1b"),
                                              "--model",
                                              model_file("smollm2-135m"),
                                              "--model",
                                              model_file("falcon-7b"),
                                              "--model",
                                              model_file("gpt-neox-20b")};
  const CommandResult result = runner.run_and_interrupt(arguments, 1);
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_THAT(result.out, HasSubstr("not started"));
  const CommandResult again = runner.run(arguments);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("  cached  "));
  EXPECT_THAT(again.out, HasSubstr("8 kernels: "));
}

// Kernels of four families that compile quickly.
constexpr char kManifest[] = R"({"pagejit_manifest": 1, "targets": "host",
  "kernels": [{"family": "top_k"}, {"spec": "copy_blocks"}, {"spec": "convert_float8"},
              {"family": "merge_states", "head_size": [64, 128]}]})";

TEST(PrecompileHostTest, ShardsTogetherAreTheManifest) {
  const CommandRunner runner;
  const std::string file = runner.write_file("fleet.json", kManifest);
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"precompile", "--manifest", file});
    return runner.run(flags);
  };
  const CommandResult nothing = run({"--verify"});
  EXPECT_EQ(nothing.exit_code, 5) << nothing.err;
  EXPECT_THAT(nothing.out, HasSubstr("5 kernels: 0 compiled, 0 cached, 5 missing"));
  EXPECT_THAT(nothing.err, HasSubstr("pagejit: copy_blocks alignment=16 for host is not stored"));

  const CommandResult first = run({"--shard", "1/2"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("fleet.json: 5 kernels\nshard 1/2: 3 of 5 kernels\n"));
  EXPECT_THAT(first.out, HasSubstr("3 kernels: 3 compiled"));
  const CommandResult half = run({"--verify"});
  EXPECT_EQ(half.exit_code, 5);
  EXPECT_THAT(half.out, HasSubstr("5 kernels: 0 compiled, 3 cached, 2 missing"));

  const CommandResult second = run({"--shard", "2/2"});
  EXPECT_THAT(second.out, HasSubstr("2 kernels: 2 compiled, 0 cached")) << "disjoint";
  const CommandResult whole = run({"--verify", "--json", "-"});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(std::count(whole.out.begin(), whole.out.end(), '\n'), 5);
  EXPECT_THAT(run({"--arch", "host_80"}).out, HasSubstr("5 kernels, 0 of them for --arch\n"));
}

TEST(PrecompileHostTest, BundlesOfShardsMergeToTheOneOfAWholeRun) {
  const CommandRunner shards, whole;
  const auto precompile = [](const CommandRunner& runner, std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"precompile", "--manifest", runner.write_file("fleet.json", kManifest)});
    return runner.run(flags);
  };
  const std::string fleet = whole.folder() + "/fleet.pjb";
  const CommandResult made = precompile(whole, {"--output", fleet});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const std::string parts[] = {shards.folder() + "/1.pjb", shards.folder() + "/2.pjb"};
  EXPECT_EQ(precompile(shards, {"--shard", "1/2", "-o", parts[0]}).exit_code, 0);
  EXPECT_EQ(precompile(shards, {"--shard", "2/2", "-o", parts[1]}).exit_code, 0);
  const std::string merged = shards.folder() + "/merged.pjb";
  const CommandResult merge = shards.run({"bundle", "merge", parts[1], parts[0], "-o", merged});
  EXPECT_EQ(merge.exit_code, 0) << merge.err;
  const std::string bytes = CommandRunner::read_file(fleet);
  EXPECT_GT(bytes.size(), 1000u);
  EXPECT_TRUE(CommandRunner::read_file(merged) == bytes);
  EXPECT_FALSE(CommandRunner::read_file(parts[0]) == bytes);

  // On a machine that has nothing else.
  const CommandRunner fresh;
  const CommandResult verified = precompile(fresh, {"--verify", "--bundle", merged});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const CommandResult half = precompile(fresh, {"--verify", "--bundle", parts[0]});
  EXPECT_EQ(half.exit_code, 5);
  EXPECT_THAT(half.out, HasSubstr("5 kernels: 0 compiled, 3 cached, 2 missing"));
}

TEST(PrecompileHostTest, ABundleIsNotWrittenWhereAKernelFailed) {
  CommandRunner runner;
  const std::string output = runner.folder() + "/fleet.pjb";
  runner.set_variable("PAGEJIT_HOST_CXX",
                      runner.write_script("c++", R"([ "$1" = --version ] && exec c++ "$@"
exit 1
)"));
  const CommandResult result = runner.run(
      {"precompile", "--manifest", runner.write_file("fleet.json", kManifest), "--output", output});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("is not written, since not all of its kernels were made"));
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST(PrecompileHostTest, CompiledAgainTheImagesAreTheSame) {
  CommandRunner runner;
  const std::string file = runner.write_file("fleet.json", kManifest);
  const std::vector<std::string> arguments = {"precompile", "--manifest", file, "--reproducible"};
  const CommandResult same = runner.run(arguments);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("5 kernels: 5 compiled, 0 cached"));
  EXPECT_THAT(same.out, HasSubstr("compiled again:\n"));

  // A compiler whose objects end in the number of its process.
  CommandRunner other;
  other.set_variable("PAGEJIT_HOST_CXX", other.write_script("c++", R"(c++ "$@" || exit 1
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo $$ >> "$2"; shift; done
exit 0
)"));
  const CommandResult differs = other.run(arguments);
  EXPECT_EQ(differs.exit_code, 5) << differs.err;
  EXPECT_THAT(differs.err,
              HasSubstr("pagejit: top_k for host: compiled again it is another image"));
}

TEST(PrecompileHostTest, WhatAProgramRecordedItNeverCompilesAgain) {
  CommandRunner recording, production;
  const std::string trace = recording.folder() + "/trace";
  recording.set_variable("PAGEJIT_RECORD", trace);
  production.set_variable("PAGEJIT_JIT", "error");
  const std::vector<std::string> program = {"check",    "--head-size", "64",    "--group-size",
                                            "3",        "--arch",      "sm_80", "--driver",
                                            "emulator", "--batches",   "1"};
  EXPECT_EQ(recording.run(program).exit_code, 0);
  EXPECT_EQ(production.run(program).exit_code, 3);
  std::ofstream(trace, std::ios::app) << "half a li";
  const CommandResult made = production.run({"precompile", "--trace", trace});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("1 kernel: 1 compiled"));
  const CommandResult warm = production.run(program);
  EXPECT_EQ(warm.exit_code, 0) << warm.err;
}

TEST(PrecompileHostTest, ADamagedLineOfATraceIsTold) {
  const CommandRunner runner;
  const std::string trace =
      runner.write_file("trace", "{\"spec\":\"top_\n{\"spec\":\"top_k\",\"target\":\"host\"}\n");
  const CommandResult result = runner.run({"precompile", "--trace", trace});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(trace + ": line 1: not valid JSON"));
  EXPECT_THAT(result.out, HasSubstr("1 kernel: 1 compiled"));
}

TEST(PrecompileHostTest, SeveralNumbersOfGpus) {
  const CommandResult result =
      CommandRunner().run({"precompile", "--model", model_file("llama-3.2-1b"), "--tp", "1,16,32",
                           "--arch", "host", "--verify"});
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.out, HasSubstr("3 kernels: 0 compiled, 0 cached, 3 missing"));
}

TEST(CheckTest, ComparesOnTheEmulatorAndWritesJson) {
  const CommandRunner runner;
  const std::string json_path = runner.folder() + "/check.json";
  const CommandResult result =
      runner.run({"check", "--head-size", "64", "--group-size", "3", "--arch", "sm_80", "--driver",
                  "emulator", "--batches", "2", "--json", json_path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("checked on the CPU emulator (host_80)"));
  EXPECT_THAT(result.out, HasSubstr("2 of 2 checks passed"));
  std::ifstream stream(json_path);
  std::string line;
  int lines = 0;
  while (std::getline(stream, line)) {
    const auto check = nlohmann::json::parse(line);
    EXPECT_EQ(check["verdict"], "pass");
    EXPECT_EQ(check["num_kv_heads"], 2);
    EXPECT_GT(check["elements"], 1000);
    EXPECT_GT(check["tokens"], 2000);
    EXPECT_GT(check["naive_max_error"], 0);
    ++lines;
  }
  EXPECT_EQ(lines, 2);
}

// A compiler that plants an error in the source: the last key of a tile is left out. It refuses a
// source that has no such place, so that this test cannot pass because the templates changed.
TEST(CheckTest, PlantedErrorFailsWithItsOwnExitCode) {
  CommandRunner runner;
  runner.set_variable("PAGEJIT_HOST_CXX", runner.write_script("c++", R"(for source; do :; done
if [ -f "$source" ]; then
  grep -q 'bool is_seen = token < work_.token_end;' "$source" || exit 1
  sed -i 's/bool is_seen = token < work_.token_end;/bool is_seen = token < work_.token_end - 1;/' "$source"
fi
exec c++ "$@"
)"));
  const CommandResult result = runner.run({"check", "--head-size", "64", "--group-size", "3",
                                           "--driver", "emulator", "--batches", "1"});
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.out, HasSubstr("  FAIL\n0 of 1 checks passed"));
  EXPECT_THAT(result.err, HasSubstr("pagejit: bf16 d64 b16 g3, seed 1: "));
}

TEST(PrecompileHostTest, CompilerThatRefusesTheSourceGivesItsLog) {
  CommandRunner runner;
  runner.set_variable("PAGEJIT_HOST_CXX",
                      runner.write_script("c++", R"([ "$1" = --version ] && exec c++ "$@"
echo 'kernel.cc:1: error: no such thing' >&2
exit 1
)"));
  const CommandResult result = runner.run(
      {"precompile", "--head-size", "64", "--group-size", "3", "--arch", "host,host_80"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, HasSubstr("2 kernels: 0 compiled, 0 cached, 2 failed"));
  EXPECT_THAT(result.err, HasSubstr("error: no such thing"));
}

TEST(CheckTest, LayersOfAModelAreCheckedForEveryQueryLength) {
  const CommandRunner runner;
  for (const char* queries : {"one", "few", "many", "shared"}) {
    const CommandResult result = runner.run({"check", "--model", model_file("gpt-oss-20b"),
                                             "--driver", "emulator", "--queries", queries});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(" window sinks"));
    EXPECT_THAT(result.out, HasSubstr("4 of 4 checks passed"));
  }
}

TEST(CheckTest, OptionsOfASpecOfOnesOwnAreChecked) {
  const CommandResult result =
      CommandRunner().run({"check", "--head-size", "64", "--group-size", "3", "--queries", "few",
                           "--causal", "--window", "30", "--block-sparse", "1,3,8,1", "--soft-cap",
                           "2", "--alibi", "--sinks", "--driver", "emulator"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("few bf16 d64 b16 g3 causal window sparse cap alibi sinks"));
  EXPECT_THAT(result.out, HasSubstr("2 of 2 checks passed"));
}

TEST(CheckTest, CascadesAreChecked) {
  const CommandRunner runner;
  for (const char* queries : {"one", "few", "many"}) {
    std::vector<std::string> arguments = {"check",     "--head-size", "64",       "--group-size",
                                          "3",         "--queries",   queries,    "--sinks",
                                          "--cascade", "3",           "--driver", "emulator"};
    if (std::string(queries) != "one") arguments.emplace_back("--causal");
    const CommandResult result = runner.run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("2 of 2 checks passed"));
  }
  const CommandResult refused =
      runner.run({"check", "--head-size", "64", "--group-size", "3", "--window", "30", "--cascade",
                  "2", "--driver", "emulator", "--batches", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("window"));
}

TEST(CheckTest, ModelWithUnsupportedLayersChecksTheOthers) {
  const CommandResult result = CommandRunner().run(
      {"check", "--model", model_file("qwen3-next-80b"), "--driver", "emulator", "--batches", "1"});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_THAT(result.out, HasSubstr("1 of 1 checks passed"));
}

TEST(BenchTest, TheEmulatorIsRefusedByEverySuite) {
  const CommandRunner runner;
  for (const char* suite : {"decode", "v1v2", "paging", "fp8", "prefill", "mixed", "cascade"}) {
    const CommandResult result = runner.run({"bench", suite, "--driver", "emulator"});
    EXPECT_EQ(result.exit_code, 3) << suite;
    EXPECT_THAT(result.err, HasSubstr("the emulator has no times worth printing")) << suite;
    EXPECT_EQ(result.out, "") << suite;
  }
  EXPECT_EQ(runner.run({"bench", "--driver", "emulator"}).exit_code, 3);
  EXPECT_EQ(runner.run({"bench", "encode"}).exit_code, 1) << "there is no such suite";
}

TEST(CheckTest, InsistingOnAGpuNeverTakesTheEmulator) {
  CommandRunner runner;
  runner.set_variable("CUDA_VISIBLE_DEVICES", "-1");  // a driver has no device then
  const CommandResult result = runner.run(
      {"check", "--head-size", "64", "--group-size", "3", "--driver", "cuda", "--batches", "1"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("no CUDA driver works"));
}

}  // namespace
}  // namespace pagejit::cli
