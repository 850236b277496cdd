// What `pagejit tune` tells and writes at its end, of results that no device was asked for.
#include "tools/cli/tune_outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <sstream>

#include "generator/planner.h"
#include "tests/tools/tune/tune_fixture.h"
#include "tools/tune/gpu_timer.h"

namespace pagejit::cli {
namespace {

using ::testing::HasSubstr;

class TuneOutcomeTest : public TuneRunTest {
 protected:
  // The planner's candidate, and others with these statuses.
  static TuneResult result_with(const std::vector<Status>& others) {
    TuneResult result;
    const Result<KernelConfig> config = plan(kTunedSpec, *parse_target("sm_90a"));
    EXPECT_TRUE(config);
    result.candidates.resize(1 + others.size());
    for (TuneCandidate& candidate : result.candidates) candidate.config = *config;
    for (size_t i = 0; i < others.size(); ++i) result.candidates[i + 1].status = others[i];
    return result;
  }
  static cache::BundleWriter bundle_of_a_record() {
    TunedRecord record;
    record.spec = canonical_text(kTunedSpec);
    record.target = "sm_90a";
    record.device = "GPU A";
    record.tile = record.planned_tile = "number=1";
    record.image = std::string(64, 'a');
    record.version = "test";
    record.problems = {{.name = "batch=1", .planned_ns = 20, .tuned_ns = 10}};
    cache::BundleWriter writer;
    EXPECT_TRUE(writer.add(encode_tuned_record(record)));
    return writer;
  }

  std::ostringstream out, err;
  std::atomic<bool> interrupted = false;
  CommandContext context{.out = out, .err = err, .interrupted = interrupted};
};

TEST_F(TuneOutcomeTest, ACandidateThatFailsGivesTheExitCodeOfItsStatus) {
  fail_left_out(result_with({Status()}), context);
  EXPECT_EQ(context.exit_code, ExitCode::kOk);
  EXPECT_EQ(err.str(), "");
  const struct {
    StatusCode status;
    ExitCode code;
  } cases[] = {{StatusCode::kDeviceCheckFailed, ExitCode::kVerification},
               {StatusCode::kCompileFailed, ExitCode::kKernelFailed},
               {StatusCode::kDriverError, ExitCode::kEnvironment}};
  for (const auto& c : cases) {
    context.exit_code = ExitCode::kOk;
    err.str("");
    fail_left_out(result_with({Status(c.status, "the reason")}), context);
    EXPECT_EQ(context.exit_code, c.code);
    EXPECT_THAT(err.str(), HasSubstr(": the reason\n"));
  }
  context.exit_code = ExitCode::kOk;
  fail_left_out(result_with({Status(StatusCode::kDeviceCheckFailed, "wrong"),
                             Status(StatusCode::kCompileFailed, "no kernel"),
                             Status(StatusCode::kDeviceCheckFailed, "wrong")}),
                context);
  EXPECT_EQ(context.exit_code, ExitCode::kKernelFailed) << "the worse of both";
}

TEST_F(TuneOutcomeTest, ABundleIsWrittenWhereTheJsonCannotBe) {
  const std::string bundle = folder + "/tuned.pjb";
  const TuneFiles files = {.json_path = folder + "/absent/tuned.json", .bundle_path = bundle};
  EXPECT_FALSE(write_tune_files(files, "{}\n", bundle_of_a_record(), context));
  EXPECT_EQ(context.exit_code, ExitCode::kIo);
  EXPECT_THAT(err.str(), HasSubstr("/absent/tuned.json: cannot be written"));
  EXPECT_TRUE(std::filesystem::exists(bundle));
  EXPECT_THAT(out.str(), HasSubstr(bundle + ": 1 entries"));
}

TEST_F(TuneOutcomeTest, EachFileThatCannotBeWrittenIsTold) {
  const TuneFiles files = {.json_path = folder + "/absent/tuned.json",
                           .bundle_path = folder + "/missing/tuned.pjb"};
  EXPECT_FALSE(write_tune_files(files, "{}\n", bundle_of_a_record(), context));
  EXPECT_EQ(context.exit_code, ExitCode::kIo);
  EXPECT_THAT(err.str(), HasSubstr("/absent/tuned.json"));
  EXPECT_THAT(err.str(), HasSubstr("/missing/tuned.pjb"));
  EXPECT_EQ(out.str(), "");
}

TEST_F(TuneOutcomeTest, BothFilesAreWrittenAndABundleWithoutEntriesIsNot) {
  const TuneFiles files = {.json_path = "-", .bundle_path = folder + "/tuned.pjb"};
  EXPECT_TRUE(write_tune_files(files, "{}\n", cache::BundleWriter(), context));
  EXPECT_FALSE(std::filesystem::exists(files.bundle_path));
  EXPECT_TRUE(write_tune_files(files, "{}\n", bundle_of_a_record(), context));
  EXPECT_TRUE(std::filesystem::exists(files.bundle_path));
  EXPECT_EQ(out.str(), "{}\n{}\n") << "JSON alone";
  EXPECT_EQ(context.exit_code, ExitCode::kOk);
}

TEST(GpuTuneTimerTest, TooFewCachesAreSaid) {
  AttentionBenchCase c{.name = "", .spec = {.head_size = 128, .group_size = 4}};
  c.num_seqs = 1;
  c.seq_len = 8192;
  EXPECT_EQ(describe_shortfall(c, pools_for(c)), "");
  c.spec.window = true;
  c.window_left = 127;
  EXPECT_EQ(describe_shortfall(c, pools_for(c)),
            "256 caches take turns, of which launches read 134 MB in all; an L2 of that size or "
            "more serves them");
}

}  // namespace
}  // namespace pagejit::cli
