// Engines that follow tuned records, and all the cases in which they must not.
#include <algorithm>
#include <fstream>

#include "cache/bundle_writer.h"
#include "cache/disk_cache.h"
#include "generator/planner.h"
#include "generator/renderer.h"
#include "generator/tile_text.h"
#include "runtime/engine/tuned_kernel.h"
#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kDevice = "Stub GPU";

class TunedChoiceTest : public JitPolicyTest {
 protected:
  using Plan = std::function<Result<AnyConfig>(const AnySpec&, const Target&)>;

  // With the real planner and renderer, since a record names a tile of theirs.
  std::shared_ptr<Engine> engine_of(EngineOptions with, Plan plan = plan_any) {
    EngineDependencies parts = dependencies();
    parts.plan = std::move(plan);
    parts.render = [](const AnyConfig& config) { return render(config); };
    Result<std::shared_ptr<Engine>> engine = create_engine(std::move(with), std::move(parts));
    EXPECT_TRUE(engine) << engine.status().to_string();
    return engine ? *engine : nullptr;
  }

  EngineOptions tuned_options(JitPolicy policy = JitPolicy::kOn) {
    EngineOptions result = options_with(policy);
    result.tuned = true;
    return result;
  }

  // A candidate that is not the planner's, and that a launch tells from it.
  KernelConfig other_config(const KernelSpec& spec = kSpec) {
    const Result<PlanExplanation> explanation = explain(spec, target);
    EXPECT_TRUE(explanation);
    const int threads = explanation->candidates.front().config.threads_per_cta();
    for (const PlanCandidate& candidate : explanation->candidates) {
      if (candidate.fits && candidate.config.threads_per_cta() != threads) return candidate.config;
    }
    ADD_FAILURE() << "the planner has no second candidate";
    return {};
  }

  // Compiled into the directory of options().
  KernelInfo store(const KernelConfig& config) {
    const auto engine =
        engine_of(options(), [&](const AnySpec&, const Target&) { return AnyConfig(config); });
    Result<KernelInfo> info = engine->precompile(config.spec, config.target);
    EXPECT_TRUE(info) << info.status().to_string();
    nvrtc->compiles = nvrtc->openings = 0;
    return info ? *info : KernelInfo();
  }

  TunedRecord record_of(const KernelConfig& config, const KernelInfo& info) {
    return {.spec = canonical_text(config.spec),
            .target = config.target.to_string(),
            .device = kDevice,
            .tile = tile_text(config.attention),
            .planned_tile = tile_text(plan(config.spec, config.target)->attention),
            .image = info.key,
            .version = "test",
            .problems = {{.name = "batch=1", .planned_ns = 2000, .tuned_ns = 1000}}};
  }

  std::unique_ptr<cache::DiskCache> open_disk() {
    cache::DiskCacheOptions disk;
    disk.directory = {options().cache_dir, "", "the test"};
    return cache::DiskCache::open(std::move(disk));
  }

  void publish(const cache::Entry& entry) {
    const auto disk = open_disk();
    const Status published = disk->publish(entry);
    ASSERT_TRUE(published) << published.to_string();
  }

  // The other configuration and its record, both stored.
  KernelConfig store_choice(const KernelSpec& spec = kSpec) {
    const KernelConfig config = other_config(spec);
    publish(encode_tuned_record(record_of(config, store(config))));
    return config;
  }

  std::string bundle_of_directory() {
    cache::BundleWriter writer;
    const auto disk = open_disk();
    EXPECT_TRUE(disk->for_each_entry([&](const cache::Entry& entry) { return writer.add(entry); }));
    const std::string path = directory.path() + "/tuned.pjb";
    const Status written = writer.write_file(path);
    EXPECT_TRUE(written) << written.to_string();
    std::filesystem::remove_all(options().cache_dir);
    return path;
  }

  void expect_planned(Engine& engine, const KernelSpec& spec = kSpec) {
    const Kernel kernel = prepare(engine, spec);
    EXPECT_FALSE(kernel.info().tuned);
    EXPECT_EQ(kernel.info().threads_per_cta, plan(spec, target)->threads_per_cta());
  }

  const Target target = *parse_target("sm_90a");
};

TEST_F(TunedChoiceTest, RecordWithItsImageIsLaunched) {
  const KernelConfig chosen = store_choice();
  const auto engine = engine_of(tuned_options());
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_TRUE(kernel.info().tuned);
  EXPECT_EQ(kernel.info().origin, ImageOrigin::kDisk);
  EXPECT_EQ(kernel.info().threads_per_cta, chosen.threads_per_cta());
  ASSERT_NE(chosen.threads_per_cta(), plan(kSpec, target)->threads_per_cta());
  ASSERT_TRUE(kernel.launch(legal_args(), nullptr));
  EXPECT_EQ(script->last_launch().config.blockDimX * script->last_launch().config.blockDimY,
            static_cast<unsigned>(chosen.threads_per_cta()));
  EXPECT_EQ(nvrtc->compiles, 0);
  EXPECT_THAT(take_kinds(), ElementsAre(JitEventKind::kHit));
  EXPECT_TRUE(logged(LogLevel::kInfo, "as it was tuned"));
  EXPECT_TRUE(prepare(*engine, kSpec).info().tuned) << "from the table of loaded kernels too";
}

TEST_F(TunedChoiceTest, RecordsAreNotFollowedUnlessAskedFor) {
  store_choice();
  EngineOptions off = options();
  EXPECT_FALSE(off.tuned);
  expect_planned(*engine_of(off));
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(TunedChoiceTest, RecordWithoutItsImageCompilesThePlannersOnly) {
  const KernelConfig chosen = other_config();
  publish(encode_tuned_record(record_of(chosen, store(chosen))));
  for (const auto& file : std::filesystem::recursive_directory_iterator(options().cache_dir)) {
    // The record is far smaller than any image with its metadata and log.
    if (file.path().extension() != ".pjk") continue;
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    if (bytes.find("pagejit-tuned") == std::string::npos) std::filesystem::remove(file.path());
  }
  std::vector<int> compiled;
  nvrtc->on_compile = [&](const KernelSource& source) {
    compiled.push_back(threads_per_cta(source.config));
  };
  expect_planned(*engine_of(tuned_options()));
  EXPECT_THAT(compiled, ElementsAre(plan(kSpec, target)->threads_per_cta()));
  EXPECT_THAT(take_kinds(), ElementsAre(JitEventKind::kCompile));
  EXPECT_TRUE(logged(LogLevel::kInfo, "its image"));
}

TEST_F(TunedChoiceTest, BundleWithRecordAndImageServesWithoutACompiler) {
  const KernelConfig chosen = store_choice();
  EngineOptions with = tuned_options(JitPolicy::kError);
  with.bundles = {bundle_of_directory()};
  for (const bool has_compiler : {true, false}) {
    nvrtc->available = has_compiler;
    const Kernel kernel = prepare(*engine_of(with), kSpec);
    EXPECT_TRUE(kernel.info().tuned);
    EXPECT_EQ(kernel.info().origin, ImageOrigin::kBundle);
    EXPECT_EQ(kernel.info().threads_per_cta, chosen.threads_per_cta());
  }
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_FALSE(std::filesystem::exists(with.cache_dir + "/v1"));
}

TEST_F(TunedChoiceTest, UnderErrorARecordAloneIsAMissAsBefore) {
  const KernelConfig chosen = other_config();
  KernelInfo info;
  info.key = "0123.4567";
  publish(encode_tuned_record(record_of(chosen, info)));
  const Result<Kernel> kernel = engine_of(tuned_options(JitPolicy::kError))->prepare(kSpec, 0);
  EXPECT_EQ(kernel.status().code(), StatusCode::kDenied);
}

TEST_F(TunedChoiceTest, CorruptRecordIsCountedAndIgnored) {
  const KernelConfig chosen = other_config();
  cache::Entry entry = encode_tuned_record(record_of(chosen, store(chosen)));
  entry.metadata.resize(entry.metadata.size() - 1);
  publish(entry);
  const auto engine = engine_of(tuned_options());
  expect_planned(*engine);
  EXPECT_EQ(engine->stats().corrupt_entries, 1u);
  EXPECT_TRUE(logged(LogLevel::kWarning, "a tuned record is not used"));
  // It was set aside.
  const auto later = engine_of(tuned_options());
  expect_planned(*later);
  EXPECT_EQ(later->stats().corrupt_entries, 0u);
}

TEST_F(TunedChoiceTest, DamagedFileOfARecordIsCountedAndIgnored) {
  const KernelConfig chosen = other_config();
  const cache::Entry entry = encode_tuned_record(record_of(chosen, store(chosen)));
  publish(entry);
  const std::string name = entry.key.file_name();
  const std::string path = options().cache_dir + "/v1/objects/" + name.substr(0, 2) + "/" + name;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  const auto engine = engine_of(tuned_options());
  expect_planned(*engine);
  EXPECT_EQ(engine->stats().corrupt_entries, 1u);
}

TEST_F(TunedChoiceTest, RecordOfAnotherGpuIsIgnored) {
  const KernelConfig chosen = other_config();
  TunedRecord record = record_of(chosen, store(chosen));
  record.device = "Another GPU";
  publish(encode_tuned_record(record));
  expect_planned(*engine_of(tuned_options()));
}

TEST_F(TunedChoiceTest, RecordOfAnotherSourceIsIgnored) {
  const KernelConfig chosen = other_config();
  TunedRecord record = record_of(chosen, store(chosen));
  record.image.front() = record.image.front() == '0' ? '1' : '0';
  publish(encode_tuned_record(record));
  expect_planned(*engine_of(tuned_options()));
  EXPECT_TRUE(logged(LogLevel::kInfo, "measured with another source"));
}

TEST_F(TunedChoiceTest, NoTextMakesAKernelThatThePlannerDoesNotKnow) {
  const KernelConfig chosen = other_config();
  TunedRecord record = record_of(chosen, store(chosen));
  record.tile = "token_groups=64 row_warps=64";
  publish(encode_tuned_record(record));
  expect_planned(*engine_of(tuned_options()));
}

TEST_F(TunedChoiceTest, RecordOfThePlannersOwnChoiceChangesNothing) {
  const KernelConfig planned = *plan(kSpec, target);
  publish(encode_tuned_record(record_of(planned, store(planned))));
  expect_planned(*engine_of(tuned_options()));
  EXPECT_EQ(nvrtc->compiles, 0);
}

TEST_F(TunedChoiceTest, BatchInvariantSpecsKeepThePlannersTile) {
  KernelSpec spec = kSpec;
  spec.queries = QueryLengths::kFew;
  spec.batch_invariant = true;
  store_choice(spec);
  expect_planned(*engine_of(tuned_options()), spec);
  const Result<std::vector<TunedKernel>> listed = find_tuned(*engine_of(options()), spec, target);
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_FALSE((*listed)[0].image);
  EXPECT_THAT((*listed)[0].why_unused.message(), HasSubstr("batch_invariant"));
  // The same record of the spec without it is followed: it is that alone that counts.
  spec.batch_invariant = false;
  store_choice(spec);
  EXPECT_TRUE(prepare(*engine_of(tuned_options()), spec).info().tuned);
}

TEST_F(TunedChoiceTest, TheChoiceIsMadeOnceInAnEnginesLife) {
  max_resident_kernels = 1;
  const auto before = engine_of(tuned_options());
  expect_planned(*before);
  store_choice();
  const auto after = engine_of(tuned_options());
  EXPECT_TRUE(prepare(*after, kSpec).info().tuned);
  std::filesystem::remove_all(options().cache_dir);
  // Another kernel drives it out of the table, so that it is asked for anew.
  for (const auto& engine : {before, after}) prepare(*engine, {.group_size = 8});
  expect_planned(*before);
  EXPECT_TRUE(prepare(*after, kSpec).info().tuned);
}

TEST_F(TunedChoiceTest, WhereTheDriverRefusesTheChoiceThePlannersServes) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  store_choice();
  nvrtc->image_prefix = "good";
  const auto engine = engine_of(tuned_options());
  expect_planned(*engine);
  EXPECT_EQ(nvrtc->compiles, 1) << "the planner's, not the choice anew";
  EXPECT_EQ(engine->stats().driver_rejects, 1u);
  EXPECT_TRUE(logged(LogLevel::kWarning, "the planner's is taken"));
  expect_planned(*engine);
}

TEST_F(TunedChoiceTest, ToolsSeeTheRecordsOfAllGpus) {
  const KernelConfig chosen = store_choice();
  TunedRecord other = record_of(chosen, store(chosen));
  other.device = "Another GPU";
  other.image = "0123.4567";
  publish(encode_tuned_record(other));
  const auto engine = engine_of(options());
  Result<std::vector<TunedKernel>> found = find_tuned(*engine, kSpec, target);
  ASSERT_TRUE(found) << found.status().to_string();
  ASSERT_EQ(found->size(), 2u);
  std::sort(found->begin(), found->end(), [](const TunedKernel& a, const TunedKernel& b) {
    return a.found.record.device < b.found.record.device;
  });
  EXPECT_EQ((*found)[0].found.record, other);
  EXPECT_FALSE((*found)[0].image);
  EXPECT_FALSE((*found)[0].why_unused);
  ASSERT_TRUE((*found)[1].image);
  EXPECT_TRUE((*found)[1].image->info.tuned);
  EXPECT_EQ((*found)[1].found.record.image, (*found)[1].image->info.key);
  EXPECT_TRUE(find_tuned(*engine, {.group_size = 8}, target)->empty());
  EXPECT_EQ(nvrtc->compiles, 0);
}

TEST_F(TunedChoiceTest, ManyThreadsGetOneChoice) {
  store_choice();
  const auto engine = engine_of(tuned_options());
  std::vector<std::jthread> threads;
  std::atomic<int> tuned = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { tuned += prepare(*engine, kSpec).info().tuned ? 1 : 0; });
  }
  threads.clear();
  EXPECT_EQ(tuned, 8);
  EXPECT_EQ(engine->stats().modules_loaded, 1u);
}

}  // namespace
}  // namespace pagejit
