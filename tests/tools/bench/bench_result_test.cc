// Results as JSON and as pictures, and comparing two runs; nothing is measured.
#include "tools/bench/bench_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/bench/bench_beside.h"
#include "tools/bench/bench_compare.h"
#include "tools/bench/bench_goals.h"
#include "tools/bench/bench_svg.h"

namespace pagejit {
namespace {

using testing::HasSubstr;

BenchResult make_result(const std::string& name, double value, std::optional<double> noise = 0.01) {
  BenchResult result;
  result.suite = "decode";
  result.name = name;
  result.shape = {{"num_seqs", 8}, {"seq_len", 32768}};
  result.value = value;
  result.unit = "us";
  result.noise = noise;
  result.figures = {{"tb_per_s", 4.0}, {"kv_bytes", 1e9}};
  return result;
}

BenchRun make_run(std::vector<BenchResult> results) {
  BenchRun run;
  run.environment = describe_host("pagejit 0.1.0");
  run.environment.gpu = "NVIDIA H200";
  run.environment.driver_cuda = "13.0";
  run.results = std::move(results);
  return run;
}

std::string write_file(const std::string& text) {
  std::string path = std::filesystem::temp_directory_path() / "pagejit-bench-json-XXXXXX";
  const int fd = mkstemp(path.data());
  EXPECT_GE(fd, 0);
  std::ofstream(path) << text;
  return path;
}

TEST(BenchResultTest, JsonSaysWhereWithWhatAndWhetherTheGoalIsMet) {
  BenchResult result = make_result("GQA 32/8", 68);
  result.goal = goal_of(result, "NVIDIA H200");
  const auto json = nlohmann::json::parse(to_json(make_run({result})));
  EXPECT_EQ(json["pagejit_bench"], 1);
  EXPECT_EQ(json["environment"]["gpu"], "NVIDIA H200");
  EXPECT_EQ(json["environment"]["driver_cuda"], "13.0");
  EXPECT_THAT(json["environment"]["date"].get<std::string>(),
              testing::MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  EXPECT_GE(json["environment"]["processors"], 1);
  const auto& first = json["results"][0];
  EXPECT_EQ(first["shape"]["seq_len"], 32768);
  EXPECT_EQ(first["value"], 68);
  EXPECT_EQ(first["better"], "lower");
  EXPECT_EQ(first["figures"]["tb_per_s"], 4.0);
  EXPECT_EQ(first["goal"],
            nlohmann::json({{"figure", "tb_per_s"}, {"at_least", 3.9}, {"met", true}}));
}

TEST(BenchResultTest, GoalsAreOfTheirGpuOnly) {
  EXPECT_FALSE(goal_of(make_result("GQA 32/8", 68), "NVIDIA A100"));
  EXPECT_FALSE(goal_of(make_result("another", 68), "NVIDIA H200"));
  BenchResult slow = make_result("GQA 32/8", 42);
  slow.shape["num_seqs"] = 1;
  slow.goal = goal_of(slow, "NVIDIA H200");
  EXPECT_EQ(slow.is_goal_met(), false) << "41 us";
}

TEST(BenchResultTest, WhatIsWrittenCanBeReadAndIsTheSameRun) {
  const BenchRun run = make_run({make_result("a", 1), make_result("b", 2, std::nullopt)});
  const std::string path = write_file(to_json(run));
  const Result<BenchRun> read = load_bench_run(path);
  ASSERT_TRUE(read) << read.status().to_string();
  EXPECT_EQ(read->environment.gpu, "NVIDIA H200");
  for (const BenchDifference& difference : compare_runs(run, *read)) {
    EXPECT_EQ(difference.ratio, 1) << difference.any().name;
    EXPECT_EQ(difference.verdict, BenchVerdict::kSame);
  }
  std::filesystem::remove(path);
}

TEST(BenchResultTest, FilesOfOtherKindsAreRefusedWithTheReason) {
  const std::pair<const char*, const char*> files[] = {
      {"", "JSON"},
      {"[]", "pagejit_bench: missing"},
      {"{}", "pagejit_bench: missing"},
      {R"({"pagejit_bench": 2, "results": []})", "must be 1"},
      {R"({"pagejit_bench": 1})", "results: must be an array"},
      {R"({"pagejit_bench": 1, "results": [7]})", "results[0]"},
      {R"({"pagejit_bench": 1, "results": [{"suite": "a", "name": "b", "unit": "us"}]})",
       "results[0].value: must be a number"}};
  for (const auto& [text, reason] : files) {
    const std::string path = write_file(text);
    const Result<BenchRun> read = load_bench_run(path);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(path));
    EXPECT_THAT(read.status().message(), HasSubstr(reason));
    std::filesystem::remove(path);
  }
  EXPECT_FALSE(load_bench_run("/nonexistent"));
}

TEST(BenchCompareTest, OnlyWhatIsBeyondTheNoiseCounts) {
  const auto verdict = [](BenchResult a, BenchResult b) {
    return compare_runs(make_run({std::move(a)}), make_run({std::move(b)}))[0].verdict;
  };
  EXPECT_EQ(verdict(make_result("a", 100), make_result("a", 101.9)), BenchVerdict::kSame);
  EXPECT_EQ(verdict(make_result("a", 100), make_result("a", 103)), BenchVerdict::kWorse);
  EXPECT_EQ(verdict(make_result("a", 100), make_result("a", 97)), BenchVerdict::kBetter);
  EXPECT_EQ(verdict(make_result("a", 100), make_result("a", 109, std::nullopt)),
            BenchVerdict::kSame);
  EXPECT_EQ(verdict(make_result("a", 100), make_result("a", 111, std::nullopt)),
            BenchVerdict::kWorse);
  EXPECT_EQ(verdict(make_result("a", 16, 0), make_result("a", 17, 0)), BenchVerdict::kWorse);
  EXPECT_EQ(verdict(make_result("a", 0, 0), make_result("a", 1, 0)), BenchVerdict::kWorse);
  EXPECT_EQ(verdict(make_result("a", 0, 0), make_result("a", 0, 0)), BenchVerdict::kSame);
  BenchResult rate = make_result("a", 100), lower = make_result("a", 80);
  rate.higher_is_better = lower.higher_is_better = true;
  EXPECT_EQ(verdict(rate, lower), BenchVerdict::kWorse);
  EXPECT_NEAR(compare_runs(make_run({rate}), make_run({lower}))[0].loss(), 0.25, 1e-9);
}

TEST(BenchCompareTest, CasesArePairedByShapeAndLeftOversAreTold) {
  BenchResult longer = make_result("a", 5);
  longer.shape["seq_len"] = 65536;
  const auto differences = compare_runs(make_run({make_result("a", 1), longer}),
                                        make_run({longer, make_result("b", 1)}));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].verdict, BenchVerdict::kOnlyFirst);
  EXPECT_EQ(differences[1].verdict, BenchVerdict::kSame);
  EXPECT_EQ(differences[2].verdict, BenchVerdict::kOnlySecond);
  EXPECT_EQ(differences[2].any().name, "b");
}

TEST(BenchSvgTest, AChartForEachSuiteWithGoals) {
  BenchResult host;
  host.suite = "host";
  host.name = "launch <beyond> the raw call";
  host.value = 150;
  host.unit = "ns";
  host.goal = BenchGoal{.limit = 300};
  const std::string svg = results_svg(make_run({make_result("GQA 32/8", 68), host}));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("bench decode, NVIDIA H200"));
  EXPECT_THAT(svg, HasSubstr("% of the goal"));
  EXPECT_THAT(svg, HasSubstr("launch &lt;beyond&gt;"));
  EXPECT_THAT(svg, HasSubstr("</svg>\n</svg>"));
}

TEST(BenchBesideTest, FiguresOfAProgramBecomeResults) {
  const auto results = cli::parse_figures("host",
                                          "compile\t0.2\ts\t<=\t0.3\t0.05\n"
                                          "half a line\t1\n"
                                          "speedup\t1.74\tx\t>=\t1.7\t-1\n"
                                          "evicted\t41237\t\t\t0\t-1\n");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].is_goal_met(), true);
  EXPECT_EQ(results[0].noise, 0.05);
  EXPECT_TRUE(results[1].higher_is_better);
  EXPECT_FALSE(results[1].noise);
  EXPECT_FALSE(results[2].goal);
  EXPECT_EQ(results[2].value, 41237);
}

}  // namespace
}  // namespace pagejit
