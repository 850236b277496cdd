#include "tools/cli/precompile_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace pagejit::cli {
namespace {

using testing::HasSubstr;

std::vector<PrecompileJob> make_jobs(int count) {
  std::vector<PrecompileJob> jobs(count);
  for (int i = 0; i < count; ++i) {
    jobs[i].spec = KernelSpec{.group_size = i + 1};
    jobs[i].target = *parse_target("sm_90a");
  }
  return jobs;
}

int group_size_of(const AnySpec& spec) { return std::get<KernelSpec>(spec).group_size; }

Result<KernelInfo> compiled(ImageOrigin origin = ImageOrigin::kCompiled) {
  KernelInfo info;
  info.kernel_name = "k";
  info.origin = origin;
  info.prepare_ms = 12.5;
  info.image_bytes = 30048;
  info.registers = 131;
  info.spill_store_bytes = 4;
  info.spill_load_bytes = 8;
  info.shared_bytes = 69632;
  return info;
}

class PrecompileRunTest : public testing::Test {
 protected:
  std::vector<PrecompileOutcome> run(int num_jobs, const PrecompileFunction& precompile,
                                     int threads = 1) {
    Progress progress(stream_, {}, num_jobs);
    return run_precompile(make_jobs(num_jobs), precompile, threads, interrupted_, &progress);
  }

  std::ostringstream stream_;
  std::atomic<bool> interrupted_{false};
};

TEST_F(PrecompileRunTest, EveryJobOnceOnManyThreads) {
  std::mutex mutex;
  std::multiset<int> seen;
  const auto outcomes = run(
      100,
      [&](const AnySpec& spec, const Target&) {
        const std::lock_guard lock(mutex);
        seen.insert(group_size_of(spec));
        return compiled();
      },
      8);
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 100u);
  EXPECT_EQ(group_size_of(outcomes[41].job.spec), 42);
  EXPECT_EQ(outcome_exit_code(outcomes), ExitCode::kOk);
  EXPECT_THAT(outcome_summary(outcomes, 5),
              HasSubstr("100 kernels: 100 compiled, 0 cached, in 5.0 ms"));
}

TEST_F(PrecompileRunTest, GoesOnAfterAFailure) {
  const auto outcomes = run(3, [](const AnySpec& spec, const Target&) -> Result<KernelInfo> {
    if (group_size_of(spec) == 2) return Status(StatusCode::kCompileFailed, "ptxas said no", "log");
    return compiled(group_size_of(spec) == 1 ? ImageOrigin::kDisk : ImageOrigin::kCompiled);
  });
  EXPECT_EQ(outcome_exit_code(outcomes), ExitCode::kKernelFailed);
  EXPECT_EQ(outcome_summary(outcomes, 5), "3 kernels: 1 compiled, 1 cached, 1 failed, in 5.0 ms");
  EXPECT_EQ(stream_.str(),
            "[1/3] cached   sm_90a bf16 d128 b16 g1 in 12.5 ms\n"
            "[2/3] failed   sm_90a bf16 d128 b16 g2\n"
            "[3/3] compiled sm_90a bf16 d128 b16 g3 in 12.5 ms\n");
  EXPECT_EQ(
      outcome_table(outcomes),
      "target  dtype  head  block  group  from        ms   bytes  registers  spilled B  shared B\n"
      "------  -----  ----  -----  -----  --------  ----  ------  ---------  ---------  --------\n"
      "sm_90a  bf16    128     16      1  cached    12.5  30,048        131         12    69,632\n"
      "sm_90a  bf16    128     16      2  FAILED\n"
      "sm_90a  bf16    128     16      3  compiled  12.5  30,048        131         12    "
      "69,632\n");
}

TEST_F(PrecompileRunTest, InterruptFinishesWhatRunsAndStartsNothingMore) {
  const auto outcomes = run(3, [&](const AnySpec&, const Target&) {
    interrupted_ = true;
    return compiled();
  });
  EXPECT_TRUE(outcomes[0].result.has_value());
  EXPECT_FALSE(outcomes[1].result.has_value());
  EXPECT_EQ(outcome_exit_code(outcomes), ExitCode::kInterrupted);
  EXPECT_EQ(outcome_summary(outcomes, 5),
            "3 kernels: 1 compiled, 0 cached, 2 not started, in 5.0 ms");
}

TEST_F(PrecompileRunTest, MissingCompilerIsTheEnvironment) {
  for (const StatusCode code : {StatusCode::kCompilerUnavailable, StatusCode::kUnsupported}) {
    const auto outcomes = run(
        1, [&](const AnySpec&, const Target&) -> Result<KernelInfo> { return Status(code, "x"); });
    EXPECT_EQ(outcome_exit_code(outcomes), ExitCode::kEnvironment);
  }
}

TEST_F(PrecompileRunTest, WhatIsMissingOrOtherwiseTheSecondTimeFailsVerification) {
  for (const StatusCode code : {StatusCode::kNotFound, StatusCode::kDataCorrupt}) {
    const auto outcomes = run(2, [&](const AnySpec& spec, const Target&) -> Result<KernelInfo> {
      if (group_size_of(spec) == 1) return Status(code, "x");
      return compiled(ImageOrigin::kDisk);
    });
    EXPECT_EQ(outcome_exit_code(outcomes), ExitCode::kVerification);
    const bool missing = code == StatusCode::kNotFound;
    EXPECT_EQ(outcome_summary(outcomes, 5), std::string("2 kernels: 0 compiled, 1 cached, 1 ") +
                                                (missing ? "missing" : "failed") + ", in 5.0 ms");
    EXPECT_EQ(outcome_json(outcomes).find("\"result\":\"missing\"") != std::string::npos, missing);
  }
  EXPECT_THAT(stream_.str(), HasSubstr("[1/2] missing  sm_90a bf16 d128 b16 g1\n"));
}

TEST_F(PrecompileRunTest, EveryFamilyHasItsRow) {
  const std::vector<PrecompileJob> jobs = {{TopKSpec{}, Target::host()},
                                           {CacheWriteSpec{.head_size = 64}, Target::host()}};
  Progress progress(stream_, {}, jobs.size());
  const auto outcomes = run_precompile(
      jobs, [](const AnySpec&, const Target&) { return compiled(); }, 1, interrupted_, &progress);
  EXPECT_THAT(outcome_table(outcomes), HasSubstr("\nhost    top_k           -      -      -  "));
  EXPECT_THAT(outcome_table(outcomes), HasSubstr("\nhost    cache_write    64     16      -  "));
  EXPECT_THAT(outcome_json(outcomes), HasSubstr("\"spec\":\"top_k\""));
  EXPECT_THAT(stream_.str(), HasSubstr("[1/2] compiled host top_k in 12.5 ms\n"));
}

TEST_F(PrecompileRunTest, JsonHasOneObjectPerKernel) {
  const auto outcomes = run(2, [](const AnySpec& spec, const Target&) -> Result<KernelInfo> {
    if (group_size_of(spec) == 2)
      return Status(StatusCode::kCompileFailed, "a \"quoted\"\nreason \xff");
    return compiled();
  });
  const std::string json = outcome_json(outcomes);
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 2);
  EXPECT_THAT(json, HasSubstr("\"result\":\"compiled\""));
  EXPECT_THAT(json, HasSubstr("\"registers\":131"));
  EXPECT_THAT(json, HasSubstr("\"message\":\"a \\\"quoted\\\"\\nreason "));
}

}  // namespace
}  // namespace pagejit::cli
