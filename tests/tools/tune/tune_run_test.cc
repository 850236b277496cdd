// Tuning on the emulator with times that the test chooses, and an engine that takes the choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cache/bundle_writer.h"
#include "generator/planner.h"
#include "generator/renderer.h"
#include "tests/tools/tune/tune_fixture.h"
#include "tools/cli/tune_report.h"
#include "tools/cli/tuned_lines.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

TEST_F(TuneRunTest, TheFasterCandidateIsKeptAndTaken) {
  FakeTimer timer({100, 80});
  const Result<TuneResult> result = run_tune(request(), *session, timer);
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_EQ(timer.calls, 6);
  EXPECT_EQ(result->verdict.choice, 1u);
  EXPECT_EQ(result->record.tile, timer.tiles[1]);
  EXPECT_EQ(result->record.planned_tile, timer.tiles[0]);
  ASSERT_EQ(result->record.problems.size(), 1u);
  EXPECT_EQ(result->record.problems[0].planned_ns, 100'000u);
  EXPECT_EQ(result->record.problems[0].tuned_ns, 80'000u);
  const std::string table = cli::tune_table(*result);
  EXPECT_THAT(table, HasSubstr("us, batch=4 seq_len=100 kv_heads=2"));
  EXPECT_THAT(table, HasSubstr("80.00"));
  EXPECT_THAT(table, HasSubstr("0.800"));
  EXPECT_THAT(table, HasSubstr("chosen"));
  EXPECT_FALSE(std::filesystem::exists(options.cache_dir)) << "nothing is stored while measuring";
  const std::string line = cli::tune_json(*result);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one object per line";
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["spec"], canonical_text(kTunedSpec));
  EXPECT_EQ(json["chosen"], timer.tiles[1]);
  EXPECT_EQ(json["planned"], timer.tiles[0]);
  EXPECT_EQ(json["speedup"], 1.25);
  EXPECT_EQ(json["problems"][0]["planned_us"], 100);
  EXPECT_EQ(json["problems"][0]["tuned_us"], 80);
  EXPECT_EQ(json["candidates"][0]["result"], "timed");
  EXPECT_EQ(json["candidates"][1]["result"], "chosen");
  EXPECT_EQ(json["candidates"][1]["key"], json["image"]);
  EXPECT_EQ(json["candidates"][1]["rounds_us"].dump(), "[[80.0,80.0,80.0]]");

  // From the directory.
  ASSERT_TRUE(store_choice(*result, *open_disk()));
  EngineOptions tuned = options;
  tuned.tuned = true;
  tuned.jit = JitPolicy::kError;
  const Result<Kernel> kernel = make_engine(tuned)->prepare(kTunedSpec, 0);
  ASSERT_TRUE(kernel) << kernel.status().to_string();
  EXPECT_TRUE(kernel->info().tuned);
  EXPECT_EQ(kernel->info().key, result->record.image);
  tuned.tuned = false;
  const Result<Kernel> planned = make_engine(tuned)->prepare(kTunedSpec, 0);
  ASSERT_TRUE(planned) << planned.status().to_string();
  EXPECT_FALSE(planned->info().tuned);

  // And from a bundle alone.
  cache::BundleWriter writer;
  const Result<std::vector<cache::Entry>> entries = entries_of(*result);
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 3u);
  for (const cache::Entry& entry : *entries) ASSERT_TRUE(writer.add(entry));
  ASSERT_TRUE(writer.write_file(folder + "/tuned.pjb"));
  tuned.tuned = true;
  tuned.cache_dir = folder + "/other";
  tuned.bundles = {folder + "/tuned.pjb"};
  const Result<Kernel> bundled = make_engine(tuned)->prepare(kTunedSpec, 0);
  ASSERT_TRUE(bundled) << bundled.status().to_string();
  EXPECT_TRUE(bundled->info().tuned);
  EXPECT_EQ(bundled->info().origin, ImageOrigin::kBundle);
  const auto listed =
      find_tuned(*make_engine(tuned), kTunedSpec, *make_engine(tuned)->target_of_device(0));
  ASSERT_TRUE(listed);
  EXPECT_THAT(cli::tuned_lines(*listed), HasSubstr("1.25 times as fast; taken where"));
}

TEST_F(TuneRunTest, WithinTheNoiseThePlannersStaysAndTheRecordSaysSo) {
  FakeTimer timer({100, 99});
  const Result<TuneResult> result = run_tune(request(), *session, timer);
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_EQ(result->verdict.choice, 0u);
  EXPECT_FALSE(result->record.changes_tile());
  ASSERT_TRUE(store_choice(*result, *open_disk()));
  EngineOptions tuned = options;
  tuned.tuned = true;
  const Result<Kernel> kernel = make_engine(tuned)->prepare(kTunedSpec, 0);
  ASSERT_TRUE(kernel);
  EXPECT_FALSE(kernel->info().tuned);
  EXPECT_EQ(kernel->info().origin, ImageOrigin::kDisk);
}

// The renderer's source, with an edit where the tile is another than the planner's.
std::function<Result<KernelSource>(const AnyConfig&)> edit_of_others(const KernelSpec& spec,
                                                                     const Target& target,
                                                                     const std::string& from,
                                                                     const std::string& to) {
  const std::string planned = tile_text(plan(spec, target)->attention);
  return [=](const AnyConfig& config) -> Result<KernelSource> {
    Result<KernelSource> source = render(config);
    if (!source || tile_text(std::get<KernelConfig>(config).attention) == planned) return source;
    const size_t at = source->text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) source->text.replace(at, from.size(), to);
    return source;
  };
}

// The times would make the second the choice.
TEST_F(TuneRunTest, ACandidateWithWrongResultsIsLeftOutAndSaid) {
  FakeTimer timer({100, 80});
  TuneRequest planted = request();
  planted.render = edit_of_others(planted.spec, planted.target, "work.token_end = work.seq_len;",
                                  "work.token_end = work.seq_len - 1;");
  std::string said;
  planted.on_progress = [&](const std::string& line) { said += line + "\n"; };
  const Result<TuneResult> result = run_tune(planted, *session, timer);
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_EQ(timer.calls, 3) << "what is wrong is never timed";
  EXPECT_EQ(result->verdict.choice, 0u);
  EXPECT_FALSE(result->record.changes_tile());
  ASSERT_EQ(result->candidates.size(), 2u);
  EXPECT_EQ(result->candidates[1].status.code(), StatusCode::kDeviceCheckFailed);
  EXPECT_THAT(said, HasSubstr(": its results are wrong: "));
  EXPECT_THAT(cli::tune_table(*result), HasSubstr("left out: its results are wrong"));
  const auto json = nlohmann::json::parse(cli::tune_json(*result));
  EXPECT_EQ(json["candidates"][1]["result"], "left out");
  EXPECT_THAT(json["candidates"][1]["message"], HasSubstr("its results are wrong"));
  const Result<std::vector<cache::Entry>> entries = entries_of(*result);
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 2u) << "the planner's and the record";
}

TEST_F(TuneRunTest, ACandidateThatDoesNotCompileIsLeftOutAndSaid) {
  FakeTimer timer({100, 80});
  TuneRequest planted = request();
  planted.render =
      edit_of_others(planted.spec, planted.target, "work.token_end = work.seq_len;", "oops");
  const Result<TuneResult> result = run_tune(planted, *session, timer);
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_EQ(timer.calls, 3);
  EXPECT_EQ(result->verdict.choice, 0u);
  EXPECT_EQ(result->candidates[1].status.code(), StatusCode::kCompileFailed);
  EXPECT_EQ(result->candidates[1].entry, nullptr);
  EXPECT_THAT(cli::tune_table(*result), HasSubstr("left out: "));
}

TEST_F(TuneRunTest, WhereThePlannersOwnIsWrongNothingIsTuned) {
  FakeTimer timer({100, 80});
  TuneRequest planted = request();
  planted.render = [](const AnyConfig& config) {
    Result<KernelSource> source = render(config);
    const std::string right = "work.token_end = work.seq_len;";
    source->text.replace(source->text.find(right), right.size(),
                         "work.token_end = work.seq_len - 1;");
    return source;
  };
  const Result<TuneResult> result = run_tune(planted, *session, timer);
  EXPECT_EQ(result.status().code(), StatusCode::kDeviceCheckFailed);
  EXPECT_THAT(result.status().message(), HasSubstr("the planner's choice"));
  EXPECT_EQ(timer.calls, 0);
  EXPECT_FALSE(std::filesystem::exists(options.cache_dir));
  const auto json = nlohmann::json::parse(cli::tune_failure_json(planted, result.status()));
  EXPECT_EQ(json["spec"], canonical_text(planted.spec));
  EXPECT_EQ(json["error"], result.status().message());
}

TEST_F(TuneRunTest, AnInterruptKeepsNothing) {
  FakeTimer timer({100, 80});
  TuneRequest stopped = request();
  stopped.is_interrupted = [&] { return timer.calls == 3; };
  const Result<TuneResult> result = run_tune(stopped, *session, timer);
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(timer.calls, 3);
  EXPECT_FALSE(std::filesystem::exists(options.cache_dir));
}

TEST_F(TuneRunTest, AnInterruptAtTheBeginningCompilesNothing) {
  FakeTimer timer({});
  TuneRequest stopped = request();
  stopped.is_interrupted = [] { return true; };
  stopped.render = [](const AnyConfig&) -> Result<KernelSource> {
    ADD_FAILURE() << "rendered";
    return Status(StatusCode::kInternal, "");
  };
  EXPECT_EQ(run_tune(stopped, *session, timer).status().code(), StatusCode::kCancelled);
}

TEST_F(TuneRunTest, BatchInvariantSpecsAreRefused) {
  FakeTimer timer({});
  TuneRequest refused = request();
  refused.spec.queries = QueryLengths::kFew;
  refused.spec.batch_invariant = true;
  const Result<TuneResult> result = run_tune(refused, *session, timer);
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("batch_invariant 1: must be 0"));
}

}  // namespace
}  // namespace pagejit
