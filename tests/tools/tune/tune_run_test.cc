// Tuning on the emulator with times that the test chooses, and an engine that takes the choice.
#include "tools/tune/tune_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cache/bundle_writer.h"
#include "generator/tile_text.h"
#include "runtime/engine/device.h"
#include "tools/cli/tune_report.h"
#include "tools/cli/tuned_lines.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

constexpr KernelSpec kSpec{.head_size = 64, .group_size = 2};

// The times that a test chooses, by the candidate's place in the order of first calls.
class FakeTimer final : public TuneTimer {
 public:
  explicit FakeTimer(std::vector<double> us) : us_(std::move(us)) {}

  Result<double> time_us(const TuneProblem&, const KernelConfig& config,
                         const Kernel& kernel) override {
    ++calls;
    EXPECT_TRUE(kernel) << "a kernel that can be launched";
    EXPECT_EQ(kernel.info().threads_per_cta, config.threads_per_cta());
    const std::string tile = tile_text(config.attention);
    auto place = std::find(tiles.begin(), tiles.end(), tile);
    if (place == tiles.end()) place = tiles.insert(tiles.end(), tile);
    return us_.at(static_cast<size_t>(place - tiles.begin()));
  }

  std::vector<std::string> tiles;
  int calls = 0;

 private:
  const std::vector<double> us_;
};

class TuneRunTest : public ::testing::Test {
 protected:
  TuneRunTest() {
    std::string name = (std::filesystem::temp_directory_path() / "pagejit-tune-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder = name;
    Result<EngineOptions> read = EngineOptions::from_environment();
    if (!read) std::abort();
    options = *read;
    options.cache_dir = folder + "/cache";
    Result<std::unique_ptr<DeviceSession>> opened = DeviceSession::open(options);
    if (!opened) std::abort();
    session = std::move(*opened);
  }
  ~TuneRunTest() override {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }

  std::shared_ptr<Engine> make_engine(const EngineOptions& with) {
    Result<std::shared_ptr<Engine>> engine = Engine::create(with);
    EXPECT_TRUE(engine);
    return engine ? *engine : nullptr;
  }

  TuneRequest request() {
    TuneRequest result;
    result.spec = kSpec;
    result.target = *make_engine(options)->target_of_device(0);
    result.device = device_name(session->driver(), 0);
    result.options = options;
    result.problems = {{.num_seqs = 4, .seq_len = 100, .num_kv_heads = 2}};
    CheckOptions check;
    check.batch.seq_lens = {1, 40};
    result.checks = {check};
    result.max_candidates = 2;
    result.rounds = 3;
    result.version = "test";
    return result;
  }

  std::unique_ptr<cache::DiskCache> open_disk() {
    cache::DiskCacheOptions disk;
    disk.directory = {options.cache_dir, "", "the test"};
    return cache::DiskCache::open(std::move(disk));
  }

  std::string folder;
  EngineOptions options;
  std::unique_ptr<DeviceSession> session;
};

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

  // From the directory.
  ASSERT_TRUE(store_choice(*result, *open_disk()));
  EngineOptions tuned = options;
  tuned.tuned = true;
  tuned.jit = JitPolicy::kError;
  const Result<Kernel> kernel = make_engine(tuned)->prepare(kSpec, 0);
  ASSERT_TRUE(kernel) << kernel.status().to_string();
  EXPECT_TRUE(kernel->info().tuned);
  EXPECT_EQ(kernel->info().key, result->record.image);
  tuned.tuned = false;
  const Result<Kernel> planned = make_engine(tuned)->prepare(kSpec, 0);
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
  const Result<Kernel> bundled = make_engine(tuned)->prepare(kSpec, 0);
  ASSERT_TRUE(bundled) << bundled.status().to_string();
  EXPECT_TRUE(bundled->info().tuned);
  EXPECT_EQ(bundled->info().origin, ImageOrigin::kBundle);
  const auto listed =
      find_tuned(*make_engine(tuned), kSpec, *make_engine(tuned)->target_of_device(0));
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
  const Result<Kernel> kernel = make_engine(tuned)->prepare(kSpec, 0);
  ASSERT_TRUE(kernel);
  EXPECT_FALSE(kernel->info().tuned);
  EXPECT_EQ(kernel->info().origin, ImageOrigin::kDisk);
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
