// An engine in a forked child: what still works there, and that everything is answered in bounded
// time, whatever the parent's threads were doing.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using cache::ChildProcess;
using cache::wait_for;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr KernelSpec kSpec{.group_size = 4};
const Target kSm90a{TargetKind::kCuda, 90, TargetVariant::kExact};

#if defined(__SANITIZE_THREAD__)
constexpr bool kChildrenMayStartThreads = false;
#else
constexpr bool kChildrenMayStartThreads = true;
#endif

class ForkTest : public EngineTest {
 protected:
  // Runs `check` in a forked child; true where it returned true in time.
  template <class Check>
  static bool holds_in_child(Check check) {
    ChildProcess child([&] {
      ::alarm(20);  // instead of ChildProcess's
      return check() ? 0 : 1;
    });
    return child.wait() == 0;
  }
};

TEST_F(ForkTest, ADriverThatTheParentOpenedIsRefusedWithASentence) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  const std::string parent = std::to_string(::getpid());
  EXPECT_TRUE(holds_in_child([&] {
    const uint64_t calls = script->total_calls();
    for (const Status& status :
         {engine->prepare(kSpec, 0).status(), engine->prepare({.group_size = 8}, 0).status(),
          engine->prepare_async(kSpec, 0).status(), engine->target_of_device(0).status()}) {
      EXPECT_EQ(status.code(), StatusCode::kDriverUnavailable);
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("in process " + parent), HasSubstr("does not survive a fork"),
                        HasSubstr(std::to_string(::getpid()))));
    }
    engine.reset();
    EXPECT_EQ(script->total_calls(), calls) << "the driver is not called, not even at the end";
    return !HasFailure();
  }));
  EXPECT_TRUE(prepare(*engine, kSpec).launch(legal_args(), nullptr)) << "the parent goes on";
}

TEST_F(ForkTest, AHandleThatIsDroppedInTheChildUnloadsNothing) {
  auto engine = make_engine();
  Kernel kernel = prepare(*engine, kSpec);
  EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
  engine.reset();
  EXPECT_TRUE(holds_in_child([&] {
    const uint64_t calls = script->total_calls();
    kernel = {};
    return script->total_calls() == calls;
  }));
  kernel = {};
  EXPECT_EQ(script->live_libraries(), 0);
}

TEST_F(ForkTest, PrecompilingStillWorksInTheChild) {
  auto engine = make_engine();
  prepare(*engine, kSpec);
  EXPECT_TRUE(holds_in_child([&] {
    return engine->precompile({.group_size = 8}, kSm90a).is_ok() && engine->stats().compiles == 2;
  }));
  EXPECT_EQ(prepare(*engine, {.group_size = 8}).info().origin, ImageOrigin::kDisk);
}

TEST_F(ForkTest, AnEngineThatHasNotOpenedTheDriverWorksInTheChild) {
  auto engine = make_engine();
  ASSERT_TRUE(engine->precompile(kSpec, kSm90a));
  EXPECT_TRUE(holds_in_child([&] {
    if (!prepare(*engine, kSpec).launch(legal_args(), nullptr)) return false;
    if (kChildrenMayStartThreads && !engine->prepare_async(kSpec, 0)->wait()) return false;
    engine.reset();
    return script->live_libraries() == 0;
  }));
  EXPECT_TRUE(prepare(*engine, kSpec)) << "and in the parent";
}

TEST_F(ForkTest, ADriverThatCouldNotBeOpenedMayBeTriedInTheChild) {
  EngineOptions broken = options();
  broken.driver = "/nowhere/libcuda.so.1";
  auto engine = make_engine(broken);
  EXPECT_FALSE(engine->prepare(kSpec, 0));
  EXPECT_TRUE(holds_in_child([&] {
    const Status status = engine->prepare(kSpec, 0).status();
    EXPECT_THAT(status.message(), HasSubstr("/nowhere/libcuda.so.1"));
    return !HasFailure();
  }));
}

TEST_F(ForkTest, APendingOfTheParentIsCancelledInTheChild) {
  std::atomic<bool> gate{false};
  nvrtc->on_compile = [&](const KernelSource&) {
    while (!gate) std::this_thread::yield();
  };
  auto engine = make_engine();
  Pending<Kernel> pending = *engine->prepare_async(kSpec, 0);
  ASSERT_TRUE(wait_for([&] { return nvrtc->compiles == 1; }));
  EXPECT_TRUE(holds_in_child([&] {
    pending.cancel();
    const bool told = pending.wait().status().code() == StatusCode::kCancelled;
    engine.reset();
    return told && pending.is_ready();
  }));
  gate = true;
  EXPECT_TRUE(pending.wait());
}

TEST_F(ForkTest, AChildForkedDuringACallOfAnotherThreadGetsAnErrorAtOnce) {
  std::atomic<bool> gate{false};
  nvrtc->on_compile = [&](const KernelSource&) {
    while (!gate) std::this_thread::yield();
  };
  auto engine = make_engine();
  std::thread inside([&] { EXPECT_TRUE(engine->precompile(kSpec, kSm90a)); });
  ASSERT_TRUE(wait_for([&] { return nvrtc->compiles == 1; }));
  EXPECT_TRUE(holds_in_child([&] {
    const Status status = engine->precompile({.group_size = 8}, kSm90a).status();
    EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("create an engine in the child"));
    EXPECT_EQ(engine->stats().compiles, 0u);
    engine.reset();
    nvrtc->on_compile = nullptr;
    EXPECT_TRUE(make_engine()->precompile({.group_size = 8}, kSm90a)) << "as the message says";
    return !HasFailure();
  }));
  gate = true;
  inside.join();
}

TEST_F(ForkTest, AChildThatAsksForWhatItsParentHasAskedForGetsItsOwn) {
  EngineOptions with = options();
  with.compile_threads = 1;
  auto engine = make_engine(with);
  const auto ask = [&](Engine& of) { return of.prepare_async(kSpec, 0).value(); };
  // Forked before the worker has begun, or while it works, or when it is done: it never hangs.
  for (int i = 0; i < 20; ++i) {
    engine = make_engine(with);
    const Pending<Kernel> pending = ask(*engine);
    EXPECT_TRUE(holds_in_child([&] {
      if (!kChildrenMayStartThreads) return true;
      Result<Pending<Kernel>> own = engine->prepare_async(kSpec, 0);
      const Status status = own ? own->wait().status() : own.status();
      return status || status.code() == StatusCode::kCompilerUnavailable ||
             status.code() == StatusCode::kDriverUnavailable;
    }));
    EXPECT_TRUE(pending.wait());
  }
}

TEST_F(ForkTest, WhoWaitedForAKernelMayForkThoughItsCallbackIsStillCalled) {
  std::atomic<bool> gate{false};
  auto engine = make_engine();
  const Pending<Kernel> pending =
      *engine->prepare_async(kSpec, 0, {.on_done = [&](const Result<Kernel>&) {
                               while (!gate) std::this_thread::yield();
                             }});
  EXPECT_TRUE(pending.wait());
  EXPECT_TRUE(holds_in_child([&] {
    EXPECT_TRUE(engine->precompile({.group_size = 8}, kSm90a));
    return !HasFailure();
  }));
  gate = true;
}

TEST_F(ForkTest, AForkInsideACallbackOfTheSameThreadLeavesTheChildUsable) {
  EngineOptions with = options();
  bool good = false;
  int num_events = 0;
  std::shared_ptr<Engine> engine;
  with.on_event = [&](const JitEvent&) {
    if (++num_events > 1) return;
    good = holds_in_child([&] {
      // Inside: that call began in the parent.
      return engine->precompile(kSpec, kSm90a).status().code() == StatusCode::kCompilerUnavailable;
    });
  };
  engine = make_engine(with);
  ASSERT_TRUE(engine->precompile(kSpec, kSm90a));
  EXPECT_TRUE(good);
}

#if !defined(__SANITIZE_ADDRESS__)  // its own locks may be held: tests/asan_fork.cc
// Threads that ask all the time, and children that ask too: each gets a kernel or an error.
void fork_while(const std::function<void(int)>& ask, const std::function<bool()>& check) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) ask(1 + (3 * i + t) % 100);
    });
  }
  for (int round = 0; round < 40; ++round) {
    ChildProcess child([&] {
      ::alarm(20);
      return check() ? 0 : 1;
    });
    EXPECT_EQ(child.wait(), 0) << "round " << round << "; 142: it hung";
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ForkTest, ChildrenOfAParentWhoseThreadsPrepareAreAnsweredInTime) {
  EngineOptions quiet = options();
  quiet.log_level = LogLevel::kOff;
  max_resident_kernels = 10;
  auto engine = make_engine(quiet);
  prepare(*engine, kSpec);
  fork_while(
      [&](int group) { prepare(*engine, {.group_size = group}); },
      [&] { return engine->prepare(kSpec, 0).status().code() == StatusCode::kDriverUnavailable; });
}

TEST_F(ForkTest, ChildrenOfAParentWhoseThreadsPrecompileAreAnsweredInTime) {
  EngineOptions quiet = options();
  quiet.log_level = LogLevel::kOff;
  auto engine = make_engine(quiet);
  fork_while([&](int group) { EXPECT_TRUE(engine->precompile({.group_size = group}, kSm90a)); },
             [&] {
               Result<KernelInfo> info = engine->precompile(kSpec, kSm90a);
               const bool good = info || info.status().code() == StatusCode::kCompilerUnavailable;
               engine.reset();
               return good;
             });
}
#endif

}  // namespace
}  // namespace pagejit
