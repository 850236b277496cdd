// What is seen of an engine from outside: each thing that happens is counted, timed, and in the log
// or an event with its key and spec.
#include <cerrno>
#include <fstream>

#include "runtime/target_ladder.h"
#include "tests/cache/child_process.h"
#include "tests/cache/fault_file_system.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::FaultFileSystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr KernelSpec kSpec{.group_size = 4};

class EngineStatsTest : public EngineTest {
 protected:
  // The line at `level` that holds `part`; "" where there is none.
  std::string line(LogLevel level, const std::string& part) {
    std::lock_guard lock(log_mutex);
    for (const auto& [at, text] : log) {
      if (at == level && text.find(part) != std::string::npos) return text;
    }
    return "";
  }
  std::filesystem::path only_entry() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
      if (entry.path().extension() == ".pjk") return entry.path();
    }
    return {};
  }
  static uint64_t corrupt(const EngineStats& stats, const std::string& kind) {
    for (const NamedCount& count : stats.corrupt_by_kind) {
      if (count.name == kind) return count.count;
    }
    ADD_FAILURE() << "no kind " << kind;
    return 0;
  }
};

TEST_F(EngineStatsTest, CompileIsCountedTimedAndLogged) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.compiles, 1u);
  EXPECT_EQ(stats.compile_ms.count, 1u);
  EXPECT_DOUBLE_EQ(stats.compile_ms.sum, 12.5);
  EXPECT_EQ(stats.load_ms.count, 1u);
  EXPECT_GT(stats.load_ms.sum, 0);
  EXPECT_EQ(stats.lookup_us.count, 1u);
  EXPECT_GT(stats.lookup_us.sum, 0);
  EXPECT_EQ(stats.process_wait_ms.count, 0u);
  EXPECT_THAT(line(LogLevel::kInfo, "compiled fake_kernel"),
              AllOf(HasSubstr(kernel.info().key), HasSubstr("group_size=4"), HasSubstr("sm_90a"),
                    HasSubstr(" in 12 ms")));
}

TEST_F(EngineStatsTest, HitsAreCountedByLayerAndLogged) {
  const std::string key = prepare(*make_engine(), kSpec).info().key;
  auto engine = make_engine();
  prepare(*engine, kSpec);
  prepare(*engine, kSpec);
  EXPECT_EQ(engine->stats().disk_hits, 1u);
  EXPECT_EQ(engine->stats().memory_hits, 1u);
  EXPECT_EQ(engine->stats().lookup_us.count, 1u) << "a loaded kernel is not looked up";
  for (const char* place : {"(cached) in ", "(memory) in "}) {
    EXPECT_THAT(line(LogLevel::kDebug, place), AllOf(HasSubstr("found "), HasSubstr(key),
                                                     HasSubstr("group_size=4"), HasSubstr(" ms ")));
  }
}

TEST_F(EngineStatsTest, FailedCompileIsLoggedWithItsKey) {
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile", "the log");
  std::string key;
  EngineOptions with = options();
  with.on_event = [&](const JitEvent& event) { key = event.key; };
  auto engine = make_engine(with);
  EXPECT_FALSE(engine->prepare(kSpec, 0));
  EXPECT_EQ(engine->stats().compile_failures, 1u);
  EXPECT_EQ(engine->stats().compile_ms.count, 0u);
  ASSERT_FALSE(key.empty());
  EXPECT_THAT(line(LogLevel::kError, "failed to compile in "),
              AllOf(HasSubstr(key), HasSubstr("group_size=4"), HasSubstr(" ms"),
                    HasSubstr("it does not compile")));
}

TEST_F(EngineStatsTest, CorruptEntriesAreCountedByKindAndLogged) {
  const std::string key = prepare(*make_engine(), kSpec).info().key;
  std::filesystem::resize_file(only_entry(), 200);
  auto engine = make_engine();
  prepare(*engine, kSpec);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(corrupt(stats, "truncated"), 1u);
  EXPECT_EQ(corrupt(stats, "checksum"), 0u);
  EXPECT_EQ(corrupt(stats, "metadata"), 0u);
  EXPECT_EQ(stats.corrupt_by_kind.size(), cache::kNumCorruptions + 1);
  EXPECT_EQ(stats.corrupt_entries, 1u);
  EXPECT_THAT(line(LogLevel::kWarning, "is not used"),
              AllOf(HasSubstr(key), HasSubstr("group_size=4")));
}

TEST_F(EngineStatsTest, PublishFailuresAreCountedByErrno) {
  EngineDependencies parts = dependencies();
  auto faults = std::make_shared<FaultFileSystem>();
  faults->fail_every(cache::Call::kRename, ENOSPC);
  parts.disk.file_system = faults;
  Result<std::shared_ptr<Engine>> engine = create_engine(options(), parts);
  ASSERT_TRUE(engine);
  prepare(**engine, kSpec);
  const EngineStats stats = (*engine)->stats();
  EXPECT_EQ(stats.publish_failures, 1u);
  ASSERT_EQ(stats.publish_failures_by_errno.count(ENOSPC), 1u);
  EXPECT_EQ(stats.publish_failures_by_errno.at(ENOSPC), 1u);
  EXPECT_NE(line(LogLevel::kInfo, "was not stored: "), "");
}

TEST_F(EngineStatsTest, DeniedMissIsCountedAndToldByEventAndLog) {
  EngineOptions with = options();
  with.jit = JitPolicy::kError;
  std::vector<JitEvent> events;
  with.on_event = [&](const JitEvent& event) { events.push_back(event); };
  auto engine = make_engine(with);
  EXPECT_EQ(engine->prepare(kSpec, 0).status().code(), StatusCode::kDenied);
  EXPECT_EQ(engine->stats().misses_denied_by_policy, 1u);
  EXPECT_EQ(engine->stats().lookup_us.count, 2 + ptx_ladder(90).size()) << "sm_90a, sm_90, PTX";
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, JitEventKind::kDenied);
  EXPECT_THAT(line(LogLevel::kError, "is not stored"),
              AllOf(HasSubstr(events[0].key), HasSubstr("group_size=4")));
}

TEST_F(EngineStatsTest, RefusedImageIsCountedAndLogged) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  Result<KernelInfo> stored = make_engine()->precompile(kSpec, *parse_target("sm_90a"));
  ASSERT_TRUE(stored);
  const std::string key = stored->key;
  nvrtc->image_prefix = "good";
  auto engine = make_engine();
  prepare(*engine, kSpec);
  EXPECT_EQ(engine->stats().driver_rejects, 1u);
  EXPECT_EQ(engine->stats().load_ms.count, 1u) << "the refused one is no load";
  EXPECT_THAT(line(LogLevel::kWarning, "the driver refused"), HasSubstr(key));
}

TEST_F(EngineStatsTest, WaitForAnotherProcessIsTimed) {
  cache::SharedMemory<std::atomic<bool>> compiling, may_end;
  nvrtc->on_compile = [&](const KernelSource&) {
    *compiling = true;
    cache::wait_for([&] { return may_end->load(); });
  };
  const Target target = *parse_target("sm_90a");
  cache::ChildProcess other([&] { return make_engine()->precompile(kSpec, target) ? 0 : 1; });
  ASSERT_TRUE(cache::wait_for([&] { return compiling->load(); }));
  auto engine = make_engine();
  std::thread waiter([&] { EXPECT_TRUE(engine->precompile(kSpec, target)); });
  EXPECT_TRUE(cache::wait_for([&] { return engine->stats().process_waits == 1; }));
  *may_end = true;
  waiter.join();
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(engine->stats().process_wait_hits, 1u);
  EXPECT_EQ(engine->stats().process_wait_ms.count, 1u);
  EXPECT_GT(engine->stats().process_wait_ms.sum, 0);
}

}  // namespace
}  // namespace pagejit
