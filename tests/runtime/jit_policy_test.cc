// What prepare() may compile, and what it tells of every kernel.
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(JitPolicyTest, EveryPolicyTakesWhatIsStored) {
  const KernelInfo stored = precompiled();
  for (const JitPolicy policy : kPolicies) {
    auto engine = engine_with(policy);
    for (const ImageOrigin origin : {ImageOrigin::kDisk, ImageOrigin::kMemory}) {
      const Kernel kernel = prepare(*engine, kSpec);
      EXPECT_EQ(kernel.info().origin, origin);
      EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
      const std::vector<JitEvent> told = take_events();
      ASSERT_EQ(told.size(), 1u) << "one for prepare(), none for the launch";
      EXPECT_EQ(told[0].kind, JitEventKind::kHit);
      EXPECT_EQ(told[0].spec, canonical_text(kSpec));
      EXPECT_EQ(told[0].target.to_string(), "sm_90a");
      EXPECT_EQ(told[0].key, stored.key);
      EXPECT_EQ(told[0].origin, origin);
      EXPECT_GT(told[0].duration_ms, 0);
      EXPECT_TRUE(told[0].status);
      EXPECT_FALSE(told[0].precompiling);
    }
    EXPECT_EQ(engine->stats().misses_denied_by_policy, 0u);
  }
  EXPECT_EQ(nvrtc->compiles, 0);
  EXPECT_EQ(log_lines(LogLevel::kWarning), 0u);
}

TEST_F(JitPolicyTest, OnCompilesWithoutAWarning) {
  auto engine = engine_with(JitPolicy::kOn);
  nvrtc->delay = std::chrono::milliseconds(20);
  const KernelInfo info = prepare(*engine, kSpec).info();
  const std::vector<JitEvent> told = take_events();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, JitEventKind::kCompile);
  EXPECT_EQ(told[0].spec, canonical_text(kSpec));
  EXPECT_EQ(told[0].target, info.target);
  EXPECT_EQ(told[0].key, info.key);
  EXPECT_EQ(told[0].origin, ImageOrigin::kCompiled);
  EXPECT_GE(told[0].duration_ms, 20);
  EXPECT_TRUE(told[0].status);
  EXPECT_EQ(log_lines(LogLevel::kWarning), 0u);
}

TEST_F(JitPolicyTest, WarnLogsEachCompileOfPrepareOnly) {
  auto engine = engine_with(JitPolicy::kWarn);
  ASSERT_TRUE(engine->precompile({.group_size = 8}, *parse_target("sm_90a")));
  EXPECT_EQ(log_lines(LogLevel::kWarning), 0u);
  const KernelInfo info = prepare(*engine, kSpec).info();
  prepare(*engine, kSpec);
  ASSERT_EQ(log_lines(LogLevel::kWarning), 1u);
  for (const std::string& part :
       {canonical_text(kSpec), std::string("for sm_90a in "), std::string(" ms"), info.key}) {
    EXPECT_TRUE(logged(LogLevel::kWarning, part)) << part;
  }
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile");
  EXPECT_FALSE(engine->prepare({.group_size = 2}, 0));
  EXPECT_TRUE(logged(LogLevel::kWarning, "failed to compile at run time: "));
}

TEST_F(JitPolicyTest, ErrorRefusesAMissAndSaysWhatIsMissing) {
  auto engine = engine_with(JitPolicy::kError);
  Result<Kernel> kernel = engine->prepare(kSpec, 0);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.status().code(), StatusCode::kDenied);
  EXPECT_EQ(nvrtc->openings, 0) << "not even opened";
  const std::vector<JitEvent> told = take_events();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, JitEventKind::kDenied);
  EXPECT_EQ(told[0].status.message(), kernel.status().message());
  EXPECT_THAT(kernel.status().message(),
              AllOf(HasSubstr(canonical_text(kSpec)), HasSubstr("sm_90a"), HasSubstr(told[0].key),
                    HasSubstr("PAGEJIT_JIT (EngineOptions::jit) is error"),
                    HasSubstr("pagejit precompile --arch sm_90a")));
  EXPECT_TRUE(logged(LogLevel::kError, kernel.status().message()));
  EXPECT_EQ(engine->stats().misses_denied_by_policy, 1u);
  EXPECT_EQ(engine->stats().misses_denied_in_capture, 0u);
  EXPECT_EQ(engine->stats().compiles, 0u);

  // What was missing is what precompile() makes.
  EXPECT_EQ(precompiled().key, told[0].key);
  EXPECT_EQ(prepare(*engine, kSpec).info().key, told[0].key);
  EXPECT_THAT(take_kinds(), ElementsAre(JitEventKind::kHit));
}

TEST_F(JitPolicyTest, OffRefusesAMissInSilence) {
  auto engine = engine_with(JitPolicy::kOff);
  for (int i = 0; i < 2; ++i) {
    Result<Kernel> kernel = engine->prepare(kSpec, 0);
    EXPECT_EQ(kernel.status().code(), StatusCode::kDenied);
    EXPECT_THAT(kernel.status().message(), HasSubstr("PAGEJIT_JIT (EngineOptions::jit) is off"));
  }
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_THAT(take_events(), IsEmpty());
  EXPECT_EQ(log_lines(LogLevel::kInfo), 0u);
  EXPECT_EQ(engine->stats().misses_denied_by_policy, 2u);
}

TEST_F(JitPolicyTest, PrecompileCompilesUnderEveryPolicy) {
  int group_size = 0;
  for (const JitPolicy policy : kPolicies) {
    auto engine = engine_with(policy);
    const KernelSpec spec = {.group_size = ++group_size};
    Result<KernelInfo> info = engine->precompile(spec, *parse_target("sm_90a"));
    ASSERT_TRUE(info) << info.status().to_string();
    EXPECT_EQ(info->origin, ImageOrigin::kCompiled);
    const std::vector<JitEvent> told = take_events();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].kind, JitEventKind::kCompile);
    EXPECT_TRUE(told[0].precompiling);
    EXPECT_EQ(prepare(*engine, spec).info().origin, ImageOrigin::kMemory);
    EXPECT_THAT(take_kinds(), ElementsAre(JitEventKind::kHit));
  }
}

TEST_F(JitPolicyTest, WhatWasRecordedAndPrecompiledIsNeverCompiledAgain) {
  EngineOptions recording = options_with(JitPolicy::kOn);
  recording.disk_cache = false;
  auto recorder = make_engine(recording);
  for (int group_size = 1; group_size <= 5; ++group_size) {
    prepare(*recorder, {.group_size = group_size});
    prepare(*recorder, {.group_size = group_size});
  }
  auto builder = make_engine();
  for (const JitEvent& event : take_events()) {
    if (event.kind != JitEventKind::kCompile) continue;
    ASSERT_TRUE(builder->precompile(*parse_spec(event.spec), event.target));
  }
  nvrtc->openings = 0;
  auto production = engine_with(JitPolicy::kError);
  for (int group_size = 1; group_size <= 5; ++group_size) {
    prepare(*production, {.group_size = group_size});
  }
  EXPECT_THAT(take_kinds(),
              ::testing::AllOf(::testing::SizeIs(5), ::testing::Each(JitEventKind::kHit)));
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_EQ(production->stats().compiles, 0u);
}

TEST_F(JitPolicyTest, ErrorTakesTheFirstStoredTargetOfTheLadder) {
  precompiled(kSpec, "sm_90");
  EXPECT_EQ(prepare(*engine_with(JitPolicy::kError), kSpec).info().target.to_string(), "sm_90");
  precompiled(kSpec, "sm_90a");
  EXPECT_EQ(prepare(*engine_with(JitPolicy::kError), kSpec).info().target.to_string(), "sm_90a");
}

TEST_F(JitPolicyTest, ErrorWithoutACompilerTakesAnyCompilersEntryAndElseNamesTheSource) {
  const std::string stored = precompiled().key;
  nvrtc->available = false;
  auto engine = engine_with(JitPolicy::kError);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kDisk);
  EXPECT_EQ(engine->prepare({.group_size = 8}, 0).status().code(), StatusCode::kDenied);
  const std::vector<JitEvent> told = take_events();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].key, stored);
  EXPECT_EQ(told[1].key.size(), 64u) << "there is no compiler to name";
}

TEST_F(JitPolicyTest, WithoutACompilerTheEntryOfTheNewestOneIsTaken) {
  std::string newest;
  for (const char* version : {"fake 9.0", "fake 12.10", "fake 12.9", "fake 2.0"}) {
    nvrtc->identity_text = version;
    const std::string key = precompiled().key;
    if (version == std::string("fake 12.10")) newest = key;
  }
  nvrtc->available = false;
  EXPECT_EQ(prepare(*engine_with(JitPolicy::kError), kSpec).info().key, newest);
}

TEST_F(JitPolicyTest, ErrorDoesNotOpenTheRealNvrtc) {
  EngineOptions real = options();
  real.jit = JitPolicy::kError;
  Result<std::shared_ptr<Engine>> engine = Engine::create(real);
  ASSERT_TRUE(engine);
  EXPECT_EQ((*engine)->prepare(kSpec, 0).status().code(), StatusCode::kDenied);
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_EQ(mapped.find("libnvrtc"), std::string::npos);
}

TEST_F(JitPolicyTest, OfThreadsThatWaitForOneCompileOneTellsOfIt) {
  auto engine = engine_with(JitPolicy::kOn);
  nvrtc->on_compile = [&](const KernelSource&) {
    EXPECT_TRUE(cache::wait_for([&] { return engine->stats().waits == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  std::thread other([&] { prepare(*engine, kSpec); });
  prepare(*engine, kSpec);
  other.join();
  ASSERT_EQ(engine->stats().waits, 1u);
  int compiles = 0, hits = 0;
  for (const JitEvent& event : take_events()) {
    if (event.kind == JitEventKind::kCompile) ++compiles;
    if (event.kind != JitEventKind::kHit) continue;
    ++hits;
    EXPECT_EQ(event.origin, ImageOrigin::kMemory);
    EXPECT_GT(event.duration_ms, 10) << "it waited";
  }
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(hits, 1);
}

TEST_F(JitPolicyTest, AFailedCompileIsToldOnceWithItsReason) {
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile", "the log");
  auto engine = engine_with(JitPolicy::kOn);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(engine->prepare(kSpec, 0));
  const std::vector<JitEvent> told = take_events();
  ASSERT_EQ(told.size(), 1u) << "the second call compiled nothing";
  EXPECT_EQ(told[0].kind, JitEventKind::kCompile);
  EXPECT_EQ(told[0].status.code(), StatusCode::kCompileFailed);
  EXPECT_EQ(told[0].status.detail(), "the log");
  EXPECT_EQ(told[0].key.size(), 64u + 1 + 8);
}

TEST_F(JitPolicyTest, AStoredImageThatTheDriverRefusesIsNotCompiledAnewUnderError) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  const std::string stored = precompiled().key;
  nvrtc->image_prefix = "good";
  auto engine = engine_with(JitPolicy::kError);
  Result<Kernel> kernel = engine->prepare(kSpec, 0);
  EXPECT_EQ(kernel.status().code(), StatusCode::kDenied);
  EXPECT_THAT(kernel.status().message(),
              AllOf(HasSubstr("CUDA_ERROR_INVALID_IMAGE"), HasSubstr(stored)));
  EXPECT_THAT(take_kinds(), ElementsAre(JitEventKind::kHit, JitEventKind::kDenied));
  EXPECT_EQ(nvrtc->compiles, 0);
  EXPECT_EQ(engine->stats().driver_rejects, 1u);
  EXPECT_EQ(engine->stats().misses_denied_by_policy, 1u);
  // precompile() does not take the refused one for the kernel.
  EXPECT_EQ(precompiled().origin, ImageOrigin::kCompiled);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kDisk);
}

TEST_F(JitPolicyTest, ACallbackMayUseTheEngine) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  precompiled();
  nvrtc->image_prefix = "good";
  std::shared_ptr<Engine> engine;
  EngineOptions reentrant = options_with(JitPolicy::kOn);
  reentrant.on_event = [&](const JitEvent& event) {
    std::unique_lock lock(event_mutex);
    events.push_back(event);
    lock.unlock();
    // The compile of a refused image happens while no other kernel is loaded.
    if (parse_spec(event.spec)->group_size == 4) prepare(*engine, {.group_size = 8});
  };
  engine = make_engine(reentrant);
  prepare(*engine, kSpec);
  EXPECT_THAT(take_kinds(), ElementsAre(JitEventKind::kHit, JitEventKind::kCompile,
                                        JitEventKind::kCompile, JitEventKind::kHit));
}

TEST_F(JitPolicyTest, WhatACallbackThrowsIsDropped) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  precompiled();
  nvrtc->image_prefix = "good";
  int calls = 0;
  EngineOptions throwing = options();
  throwing.on_event = [&](const JitEvent&) {
    ++calls;
    throw std::runtime_error("from the callback");
  };
  auto engine = make_engine(throwing);
  EXPECT_TRUE(engine->prepare(kSpec, 0));
  EXPECT_EQ(calls, 2) << "the hit and the compile";
}

}  // namespace
}  // namespace pagejit
