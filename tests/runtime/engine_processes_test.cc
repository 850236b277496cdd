// Several processes with one cache directory: who compiles, who waits, and what becomes of those
// who wait for a process that dies, stops, or cannot be waited for.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <list>
#include <thread>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/cache/fault_file_system.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::ChildProcess;
using cache::FaultFileSystem;
using cache::kSoon;
using cache::SharedMemory;
using cache::wait_for;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr KernelSpec kSpec{.group_size = 4};
constexpr int kMaxKeys = 8;

// What all processes of a test count together.
struct Counts {
  std::atomic<int> compiles[kMaxKeys + 1] = {};  // by group size
  std::atomic<int> running{0};                   // compiles that have begun
  std::atomic<int> starters{0};
  std::atomic<int> process_waits{0};
  std::atomic<int> process_wait_hits{0};
  std::atomic<int> process_wait_timeouts{0};
};

class EngineProcessesTest : public EngineTest {
 protected:
  EngineProcessesTest() {
    nvrtc->on_compile = [this](const KernelSource& source) {
      ++counts->compiles[std::get<KernelConfig>(source.config).spec.group_size];
      ++counts->running;
    };
  }

  EngineDependencies dependencies() {
    EngineDependencies result = EngineTest::dependencies();
    result.disk = disk;
    return result;
  }
  std::shared_ptr<Engine> make_engine() {
    Result<std::shared_ptr<Engine>> engine = create_engine(options(), dependencies());
    EXPECT_TRUE(engine) << engine.status().to_string();
    return *engine;
  }
  static Result<KernelInfo> precompile(Engine& engine, int group_size = kSpec.group_size) {
    return engine.precompile({.group_size = group_size}, *parse_target("sm_90a"));
  }
  // Waits until `number` processes have come here, so that all start together.
  bool start_with(int number) {
    ++counts->starters;
    return wait_for([&] { return counts->starters >= number; });
  }
  void add_to_counts(const Engine& engine) {
    const EngineStats stats = engine.stats();
    counts->process_waits += static_cast<int>(stats.process_waits);
    counts->process_wait_hits += static_cast<int>(stats.process_wait_hits);
    counts->process_wait_timeouts += static_cast<int>(stats.process_wait_timeouts);
  }
  // A process in the middle of the compile of kSpec, for ever.
  std::unique_ptr<ChildProcess> compiling_process() {
    auto child = std::make_unique<ChildProcess>([&] {
      nvrtc->delay = std::chrono::hours(1);
      return precompile(*make_engine()) ? 1 : 2;
    });
    EXPECT_TRUE(wait_for([&] { return counts->running == 1; }));
    return child;
  }

  SharedMemory<Counts> counts;
  cache::DiskCacheOptions disk;
};

TEST_F(EngineProcessesTest, ColdProcessesAndThreadsCompileEachKeyOnce) {
  constexpr int kNumProcesses = 8;
  constexpr int kNumThreads = 4;
  constexpr int kNumKeys = 6;
  nvrtc->delay = milliseconds(60);
  std::list<ChildProcess> ranks;
  for (int rank = 0; rank < kNumProcesses; ++rank) {
    ranks.emplace_back([&] {
      auto engine = make_engine();
      std::atomic<int> num_failures = 0;
      if (!start_with(kNumProcesses)) return 1;
      std::vector<std::thread> threads;
      for (int t = 0; t < kNumThreads; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < kNumKeys; ++i) {
            if (!precompile(*engine, 1 + (i + t) % kNumKeys)) ++num_failures;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      add_to_counts(*engine);
      return num_failures == 0 ? 0 : 2;
    });
  }
  for (ChildProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  for (int key = 1; key <= kNumKeys; ++key) EXPECT_EQ(counts->compiles[key], 1) << key;
  EXPECT_GT(counts->process_waits, 0);
  EXPECT_EQ(counts->process_wait_hits, counts->process_waits);
  EXPECT_EQ(counts->process_wait_timeouts, 0);
}

TEST_F(EngineProcessesTest, DifferentKeysAreCompiledAtTheSameTime) {
  // Each compile ends only when the other has begun.
  nvrtc->on_compile = [this](const KernelSource&) {
    ++counts->running;
    EXPECT_TRUE(wait_for([&] { return counts->running == 2; }));
  };
  std::list<ChildProcess> processes;
  for (int key = 1; key <= 2; ++key) {
    processes.emplace_back([&, key] {
      auto engine = make_engine();
      const bool works = static_cast<bool>(precompile(*engine, key));
      add_to_counts(*engine);
      return works && !HasFailure() ? 0 : 1;
    });
  }
  for (ChildProcess& process : processes) EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(counts->process_waits, 0);
}

TEST_F(EngineProcessesTest, WhenTheCompilingProcessIsKilledOneOfThoseThatWaitCompilesAtOnce) {
  const auto killed = compiling_process();
  constexpr int kNumWaiters = 4;
  std::list<ChildProcess> waiters;
  for (int i = 0; i < kNumWaiters; ++i) {
    waiters.emplace_back([&] {
      auto engine = make_engine();
      std::thread thread([&] { EXPECT_TRUE(precompile(*engine)); });
      EXPECT_TRUE(wait_for([&] { return engine->stats().process_waits == 1; }));
      ++counts->starters;
      thread.join();
      add_to_counts(*engine);
      return HasFailure() ? 1 : 0;
    });
  }
  ASSERT_TRUE(wait_for([&] { return counts->starters == kNumWaiters; }));
  const auto begin = steady_clock::now();
  killed->kill();
  for (ChildProcess& waiter : waiters) EXPECT_EQ(waiter.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  EXPECT_EQ(counts->compiles[kSpec.group_size], 2) << "the killed one and one other";
  EXPECT_EQ(counts->process_waits, kNumWaiters);
  EXPECT_EQ(counts->process_wait_hits, kNumWaiters - 1);
  EXPECT_EQ(counts->process_wait_timeouts, 0);
}

TEST_F(EngineProcessesTest, WhenTheCompilingProcessIsStoppedTheWaitIsBounded) {
  const auto stopped = compiling_process();
  stopped->stop();
  disk.lock_timeout = milliseconds(150);
  auto engine = make_engine();
  const auto begin = steady_clock::now();
  Result<KernelInfo> info = precompile(*engine);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(150));
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  ASSERT_TRUE(info) << info.status().to_string();
  EXPECT_EQ(info->origin, ImageOrigin::kCompiled);
  EXPECT_EQ(engine->stats().process_waits, 1u);
  EXPECT_EQ(engine->stats().process_wait_timeouts, 1u);
  EXPECT_TRUE(logged(LogLevel::kInfo, "another process has taken too long"));
  // What it stored is for everyone.
  EXPECT_EQ(precompile(*make_engine())->origin, ImageOrigin::kDisk);
}

TEST_F(EngineProcessesTest, AProcessForkedDuringACompileHoldsNobodyUp) {
  SharedMemory<std::atomic<pid_t>> grandchild;
  ChildProcess parent([&] {
    nvrtc->on_compile = [&](const KernelSource&) {
      if (::fork() == 0) *grandchild = ::getpid();  // its handlers have run
      ::alarm(60);
      cache::sleep_for_ever();
    };
    return precompile(*make_engine()) ? 1 : 2;
  });
  ASSERT_TRUE(wait_for([&] { return grandchild->load() != 0; }));
  parent.kill();
  const auto begin = steady_clock::now();
  auto engine = make_engine();
  EXPECT_TRUE(precompile(*engine));
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  EXPECT_EQ(engine->stats().process_waits, 0u);
  EXPECT_EQ(::kill(*grandchild, SIGKILL), 0);
}

TEST_F(EngineProcessesTest, ACompileThatFailsReleasesTheLock) {
  const Status failure(StatusCode::kCompileFailed, "it does not compile");
  auto first = make_engine();
  nvrtc->failure = failure;
  EXPECT_EQ(precompile(*first).status().code(), StatusCode::kCompileFailed);
  nvrtc->failure = {};
  auto second = make_engine();
  EXPECT_TRUE(precompile(*second));
  EXPECT_EQ(second->stats().process_waits, 0u);
}

TEST_F(EngineProcessesTest, NoLogLineIsWrittenUnderTheLockOfACompile) {
  disk.lock_timeout = milliseconds(0);
  for (const bool fails : {false, true}) {
    if (fails) nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile");
    std::filesystem::remove_all(options().cache_dir);
    EngineOptions with = options();
    int num_lines = 0;
    with.log_callback = [&](LogLevel level, std::string_view) {
      if (level < LogLevel::kInfo) return;
      ++num_lines;
      // Another engine that has to compile the same kernel, and so needs the lock.
      std::filesystem::remove_all(options().cache_dir + "/v1/objects");
      auto other = make_engine();
      EXPECT_EQ(precompile(*other).is_ok(), !fails);
      EXPECT_EQ(other->stats().compiles, 1u);
      EXPECT_EQ(other->stats().process_waits, 0u);
    };
    Result<std::shared_ptr<Engine>> engine = create_engine(with, dependencies());
    EXPECT_EQ(precompile(**engine).is_ok(), !fails);
    EXPECT_EQ(num_lines, 1);
  }
}

TEST_F(EngineProcessesTest, ProcessesWhoseDriverRefusesTheStoredImageCompileItAnewOnce) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  ASSERT_TRUE(precompile(*make_engine()));
  nvrtc->image_prefix = "good";
  nvrtc->delay = milliseconds(100);
  constexpr int kNumProcesses = 4;
  std::list<ChildProcess> ranks;
  for (int rank = 0; rank < kNumProcesses; ++rank) {
    ranks.emplace_back([&] {
      auto engine = make_engine();
      // All have read the refused image before any of them asks the driver.
      if (!precompile(*engine) || !start_with(kNumProcesses)) return 1;
      if (!engine->prepare(kSpec, 0)) return 2;
      if (engine->stats().driver_rejects != 1) return 3;
      add_to_counts(*engine);
      return 0;
    });
  }
  for (ChildProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  EXPECT_EQ(counts->compiles[kSpec.group_size], 2) << "the refused one and one other";
  EXPECT_EQ(counts->process_wait_hits, counts->process_waits);
  EXPECT_GT(counts->process_waits, 0);
}

TEST_F(EngineProcessesTest, WhereLocksFailKernelsAreCompiledAndItIsSaidOnce) {
  for (const int error : {ENOLCK, EOPNOTSUPP, EINVAL, EIO, EMFILE}) {
    std::filesystem::remove_all(options().cache_dir);
    log.clear();
    const auto file_system = std::make_shared<FaultFileSystem>();
    file_system->fail_every(cache::Call::kLock, error);
    disk.file_system = file_system;
    auto engine = make_engine();
    const auto begin = steady_clock::now();
    for (int key = 1; key <= 3; ++key) {
      Result<KernelInfo> info = precompile(*engine, key);
      ASSERT_TRUE(info) << info.status().to_string();
      EXPECT_EQ(info->origin, ImageOrigin::kCompiled);
    }
    EXPECT_LT(steady_clock::now() - begin, kSoon);
    int num_lines = 0;
    for (const auto& [level, line] : log) {
      EXPECT_LT(level, LogLevel::kWarning) << line;
      if (line.find("v1/lock") != std::string::npos) ++num_lines;
    }
    EXPECT_EQ(num_lines, 1);
    EXPECT_EQ(precompile(*make_engine(), 1)->origin, ImageOrigin::kDisk) << "it was stored";
  }
}

TEST_F(EngineProcessesTest, RemovingTheDirectoryDuringACompileCostsNothing) {
  auto engine = make_engine();
  nvrtc->on_compile = [&](const KernelSource&) {
    EXPECT_TRUE(std::filesystem::exists(options().cache_dir + "/v1/lock"));
    std::filesystem::remove_all(options().cache_dir);
  };
  ASSERT_TRUE(precompile(*engine));
  nvrtc->on_compile = nullptr;
  EXPECT_EQ(precompile(*make_engine())->origin, ImageOrigin::kDisk);
}

}  // namespace
}  // namespace pagejit
