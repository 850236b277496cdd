// prepare_async(): what it returns when, who joins whom, what cancelling stops, and what becomes of
// it when its engine or its Pending goes.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::kSoon;
using cache::wait_for;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr KernelSpec kSpec{.group_size = 4};

int group_of(const KernelSource& source) {
  return std::get<KernelConfig>(source.config).spec.group_size;
}

class AsyncPrepareTest : public EngineTest {
 protected:
  AsyncPrepareTest() {
    // Compiles of group sizes in `held` end when the gate opens or they are told to stop.
    nvrtc->on_compile_job = [this](const KernelSource& source, const jit::JobOptions& job) {
      {
        std::lock_guard lock(order_mutex);
        order.push_back(group_of(source));
      }
      if (!holds) return Status();
      ++num_held;
      while (!gate) {
        if (job.stop.stop_requested() && stops) {
          ++num_stopped;
          return Status(StatusCode::kCancelled, "the compiler was stopped");
        }
        std::this_thread::sleep_for(milliseconds(1));
      }
      return Status();
    };
  }
  ~AsyncPrepareTest() override { gate = true; }

  Pending<Kernel> start(Engine& engine, const KernelSpec& spec = kSpec,
                        PrepareOptions<Kernel> with = {}) {
    Result<Pending<Kernel>> pending = engine.prepare_async(spec, 0, std::move(with));
    EXPECT_TRUE(pending) << pending.status().to_string();
    return pending ? *pending : Pending<Kernel>();
  }
  // With one compiling thread, so that the order can be seen.
  std::shared_ptr<Engine> make_narrow_engine() {
    EngineOptions narrow = options();
    narrow.compile_threads = 1;
    return make_engine(narrow);
  }

  std::atomic<bool> holds{false};
  std::atomic<bool> stops{true};
  std::atomic<bool> gate{false};
  std::atomic<int> num_held{0};
  std::atomic<int> num_stopped{0};
  std::mutex order_mutex;
  std::vector<int> order;  // group sizes of the compiles that have begun
};

TEST_F(AsyncPrepareTest, ReturnsAtOnceAndYieldsALaunchableKernel) {
  holds = true;
  auto engine = make_engine();
  Pending<Kernel> pending = start(*engine);
  EXPECT_FALSE(pending.is_ready());
  EXPECT_FALSE(pending.wait_for(milliseconds(5)));
  gate = true;
  Result<Kernel> kernel = pending.wait();
  ASSERT_TRUE(kernel) << kernel.status().to_string();
  EXPECT_TRUE(pending.is_ready());
  EXPECT_TRUE(kernel->launch(legal_args(), nullptr));
  EXPECT_EQ(kernel->info().origin, ImageOrigin::kCompiled);
  EXPECT_TRUE(pending.wait()) << "as often as one likes";
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kMemory);
}

TEST_F(AsyncPrepareTest, NothingOfItRunsOnTheCallersThread) {
  std::atomic<bool> on_caller{false};
  const std::thread::id caller = std::this_thread::get_id();
  EngineDependencies parts = dependencies();
  parts.render = [&](const AnyConfig& config) {
    if (std::this_thread::get_id() == caller) on_caller = true;
    return fake_render(config);
  };
  auto engine = *create_engine(options(), parts);
  const uint64_t calls = script->total_calls();
  Pending<Kernel> pending = start(*engine);
  EXPECT_TRUE(pending.wait());
  EXPECT_FALSE(on_caller);
  EXPECT_GT(script->total_calls(), calls);
}

TEST_F(AsyncPrepareTest, ErrorsOfTheSpecAreImmediateAndOthersComeWithTheResult) {
  auto engine = make_engine();
  EXPECT_EQ(engine->prepare_async(KernelSpec{.head_size = 100}, 0).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_THAT(engine->prepare_async(kSpec, -1).status().message(), HasSubstr("current context"));
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile", "the log");
  const Result<Kernel> failed = start(*engine).wait();
  EXPECT_EQ(failed.status().code(), StatusCode::kCompileFailed);
  EXPECT_EQ(failed.status().detail(), "the log");
  EXPECT_EQ(engine->prepare_async(kSpec, 7)->wait().status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Pending<Kernel>().wait().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(AsyncPrepareTest, TheContextOfTheCallerIsUsed) {
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  auto engine = make_engine();
  driver->cuCtxPushCurrent(script->make_context(0));
  EXPECT_TRUE(engine->prepare_async(kSpec, -1)->wait());
  EXPECT_EQ(prepare(*engine, kSpec, -1).info().origin, ImageOrigin::kMemory);
  EXPECT_EQ(script->calls("cuFuncLoad"), 1u) << "in the same context";
  EXPECT_EQ(script->calls("cuDevicePrimaryCtxRetain"), 0u);
  CUcontext popped = nullptr;
  driver->cuCtxPopCurrent(&popped);
}

TEST_F(AsyncPrepareTest, AStreamThatIsBeingCapturedTakesOnlyWhatIsReady) {
  auto engine = make_engine();
  const auto stream = reinterpret_cast<CUstream>(0x77);
  script->set_capturing_stream(stream);
  EXPECT_EQ(engine->prepare_async(kSpec, 0, {.stream = stream}).status().code(),
            StatusCode::kDenied);
  EXPECT_EQ(nvrtc->compiles, 0);
  EXPECT_EQ(engine->stats().misses_denied_in_capture, 1u);
  prepare(*engine, kSpec);
  const auto ready = engine->prepare_async(kSpec, 0, {.stream = stream});
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->wait());
}

TEST_F(AsyncPrepareTest, ManyRequestsForOneKernelAreOne) {
  holds = true;
  auto engine = make_narrow_engine();
  std::vector<Pending<Kernel>> pending;
  for (int i = 0; i < 100; ++i) pending.push_back(start(*engine));
  std::thread blocking([&] { prepare(*engine, kSpec); });
  gate = true;
  for (auto& one : pending) EXPECT_TRUE(one.wait());
  blocking.join();
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(engine->stats().modules_loaded, 1u);
}

TEST_F(AsyncPrepareTest, TheCallbackComesOnceOnAnotherThreadWithoutLocks) {
  auto engine = make_engine();
  std::atomic<int> calls{0};
  std::promise<std::thread::id> thread;
  start(*engine, kSpec, {.on_done = [&](const Result<Kernel>& kernel) {
    EXPECT_TRUE(kernel);
    // Would block if a lock were held.
    EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kMemory);
    EXPECT_TRUE(engine->prepare_async(kSpec, 0));
    if (++calls == 1) thread.set_value(std::this_thread::get_id());
    throw 1;
  }});  // and detached at once
  EXPECT_NE(thread.get_future().get(), std::this_thread::get_id());
  EXPECT_TRUE(start(*engine).wait()) << "a callback that throws costs nothing";
  engine.reset();
  EXPECT_EQ(calls, 1);
}

TEST_F(AsyncPrepareTest, CancellingTheOnlyRequestStopsItsCompile) {
  holds = true;
  auto engine = make_engine();
  bool called = false;
  Pending<Kernel> pending =
      start(*engine, kSpec, {.on_done = [&](const Result<Kernel>&) { called = true; }});
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  pending.cancel();
  EXPECT_EQ(pending.wait().status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(wait_for([&] { return num_stopped == 1; }));
  // The error is nobody else's.
  gate = true;
  EXPECT_TRUE(start(*engine).wait());
  EXPECT_EQ(nvrtc->compiles, 2);
  EXPECT_EQ(engine->stats().compiles, 1u);
  EXPECT_EQ(engine->stats().compiles_cancelled, 1u);
  EXPECT_EQ(engine->stats().compile_failures, 0u);
  engine.reset();
  EXPECT_FALSE(called);
}

TEST_F(AsyncPrepareTest, CancellingOneOfSeveralStopsNothing) {
  holds = true;
  auto engine = make_engine();
  Pending<Kernel> first = start(*engine);
  Pending<Kernel> second = start(*engine);
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  first.cancel();
  first.cancel();
  EXPECT_EQ(first.wait().status().code(), StatusCode::kCancelled) << "at once";
  EXPECT_FALSE(second.wait_for(milliseconds(20)));
  gate = true;
  EXPECT_TRUE(second.wait());
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(num_stopped, 0);
}

TEST_F(AsyncPrepareTest, AThreadInPrepareKeepsACancelledRequestsCompileGoing) {
  holds = true;
  auto engine = make_engine();
  Pending<Kernel> pending = start(*engine);
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  auto blocking = std::async(std::launch::async, [&] { return engine->prepare(kSpec, 0); });
  ASSERT_TRUE(wait_for([&] { return engine->stats().waits == 1; }));
  pending.cancel();
  EXPECT_EQ(pending.wait().status().code(), StatusCode::kCancelled);
  gate = true;
  EXPECT_TRUE(blocking.get());
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(AsyncPrepareTest, WhoAsksWhileACancelledCompileEndsGetsAKernelAllTheSame) {
  holds = true;
  stops = false;  // for now it does not listen
  auto engine = make_engine();
  Pending<Kernel> pending = start(*engine);
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  pending.cancel();
  auto blocking = std::async(std::launch::async, [&] { return engine->prepare(kSpec, 0); });
  ASSERT_TRUE(wait_for([&] { return engine->stats().waits == 1; }));
  stops = true;  // ends in kCancelled; the one that came later compiles anew
  ASSERT_TRUE(wait_for([&] { return num_held == 2; }));
  gate = true;
  EXPECT_TRUE(blocking.get());
  EXPECT_EQ(num_stopped, 1);
}

TEST_F(AsyncPrepareTest, ACompileThatCannotBeStoppedIsStoredForOthers) {
  holds = true;
  stops = false;
  auto engine = make_engine();
  Pending<Kernel> pending = start(*engine);
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  pending.cancel();
  EXPECT_EQ(pending.wait().status().code(), StatusCode::kCancelled);
  gate = true;
  EXPECT_TRUE(engine->prepare(kSpec, 0));
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(AsyncPrepareTest, RequestsThatWaitAreCancelledWithoutBeingBegun) {
  holds = true;
  auto engine = make_narrow_engine();
  std::vector<Pending<Kernel>> pending;
  for (int group = 1; group <= 40; ++group) {
    pending.push_back(
        start(*engine, {.group_size = group}, {.priority = JobPriority::kBackground}));
  }
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  for (size_t i = 1; i < pending.size(); ++i) pending[i].cancel();
  for (size_t i = 1; i < pending.size(); ++i) {
    EXPECT_EQ(pending[i].wait().status().code(), StatusCode::kCancelled);
  }
  gate = true;
  EXPECT_TRUE(pending[0].wait());
  engine.reset();
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(AsyncPrepareTest, UrgentOnesOvertakeAndRaiseWhatWaits) {
  holds = true;
  auto engine = make_narrow_engine();
  std::vector<Pending<Kernel>> pending;
  const auto ask = [&](int group, JobPriority priority) {
    pending.push_back(start(*engine, {.group_size = group}, {.priority = priority}));
  };
  ask(1, JobPriority::kBackground);
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  ask(2, JobPriority::kBackground);
  ask(3, JobPriority::kBackground);
  ask(4, JobPriority::kBackground);
  ask(4, JobPriority::kUrgent);  // raises it
  ASSERT_TRUE(wait_for([&] { return num_held == 2; }));
  gate = true;
  for (auto& one : pending) EXPECT_TRUE(one.wait());
  EXPECT_THAT(order, ElementsAre(1, 4, 2, 3));
}

TEST_F(AsyncPrepareTest, AStoredKernelDoesNotWaitForBackgroundCompiles) {
  ASSERT_TRUE(make_engine()->precompile(KernelSpec{.group_size = 99}, *parse_target("sm_90a")));
  holds = true;
  auto engine = make_narrow_engine();
  std::vector<Pending<Kernel>> pending;
  for (int group = 1; group <= 20; ++group) {
    pending.push_back(
        start(*engine, {.group_size = group}, {.priority = JobPriority::kBackground}));
  }
  ASSERT_TRUE(wait_for([&] { return num_held == 1; }));
  EXPECT_TRUE(start(*engine, {.group_size = 99}).wait_for(kSoon));
  gate = true;
}

TEST_F(AsyncPrepareTest, DestroyingTheEngineCancelsWhatIsNotDoneAndTellsEveryone) {
  holds = true;
  auto engine = make_narrow_engine();
  std::atomic<int> told{0};
  std::vector<Pending<Kernel>> pending;
  for (int group = 1; group <= 10; ++group) {
    pending.push_back(
        start(*engine, {.group_size = group}, {.on_done = [&](const Result<Kernel>& kernel) {
          EXPECT_EQ(kernel.status().code(), StatusCode::kCancelled);
          ++told;
        }}));
  }
  ASSERT_TRUE(wait_for([&] { return num_held >= 1; }));
  const auto begin = std::chrono::steady_clock::now();
  engine.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  EXPECT_EQ(told, 10);
  for (auto& one : pending) EXPECT_EQ(one.wait().status().code(), StatusCode::kCancelled);
  pending[0].cancel();
}

TEST_F(AsyncPrepareTest, ACascadeIsPreparedAsAWhole) {
  EngineDependencies parts = dependencies();
  parts.plan = plan_any;
  parts.render = [](const AnyConfig& config) {
    return Result<KernelSource>(KernelSource{.text = "source of " + spec_text(config),
                                             .kernel_name = "fake_kernel",
                                             .target = target_of(config),
                                             .config = config});
  };
  nvrtc->on_compile_job = nullptr;
  auto engine = *create_engine(options(), parts);
  const CascadeSpec spec{.attention = kSpec};
  Result<Pending<CascadeKernel>> pending = engine->prepare_async(spec, 0);
  ASSERT_TRUE(pending) << pending.status().to_string();
  Result<CascadeKernel> cascade = pending->wait();
  ASSERT_TRUE(cascade) << cascade.status().to_string();
  EXPECT_EQ(cascade->spec(), spec);
  EXPECT_EQ(nvrtc->compiles, 3);
  Result<Pending<MergeStatesKernel>> merge =
      engine->prepare_async(cascade_parts(spec).merge, 0, {.priority = JobPriority::kUrgent});
  ASSERT_TRUE(merge);
  EXPECT_EQ(merge->wait()->info().origin, ImageOrigin::kMemory);
}

TEST_F(AsyncPrepareTest, ThreadsThatAskCancelAndForgetAtRandomAllGetAnAnswer) {
  EngineOptions quiet = options();
  quiet.log_level = LogLevel::kOff;
  quiet.compile_threads = 2;
  auto engine = make_engine(quiet);
  std::atomic<int> num_results{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto priority = static_cast<JobPriority>(i % 3);
        Pending<Kernel> pending =
            start(*engine, {.group_size = 1 + (i * 7 + t) % 50}, {.priority = priority});
        if (i % 3 == 1) pending.cancel();
        if (i % 5 == 2) continue;
        const Result<Kernel> kernel = pending.wait();
        EXPECT_TRUE(kernel || (i % 3 == 1 && kernel.status().code() == StatusCode::kCancelled))
            << kernel.status().to_string();
        ++num_results;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_results, 4 * 240);
}

}  // namespace
}  // namespace pagejit
