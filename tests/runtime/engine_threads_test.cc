// Many threads and many kernels on one engine.
#include <thread>
#include <vector>

#include "tests/cache/child_process.h"
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

constexpr KernelSpec kSpec{.group_size = 4};

void run_in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(EngineTest, ManyThreadsForOneSpecCompileAndLoadOnce) {
  auto engine = make_engine();
  nvrtc->on_compile = [&](const KernelSource&) {
    EXPECT_TRUE(cache::wait_for([&] { return engine->stats().waits > 0; }));
  };
  run_in_threads(16, [&](int) {
    const Kernel kernel = prepare(*engine, kSpec);
    EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
  });
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(script->calls("cuLibraryLoadData"), 1u);
  EXPECT_EQ(engine->stats().modules_loaded, 1u);
  EXPECT_GT(engine->stats().waits, 0u);
  EXPECT_EQ(script->calls("cuLaunchKernelEx"), 16u);
}

TEST_F(EngineTest, ManyThreadsForARefusedImageCompileAnewOnce) {
  // Many times: one that asks between the refusal and the new image must wait for that image.
  constexpr int kRounds = 50;
  for (int round = 1; round <= kRounds; ++round) {
    const KernelSpec spec = {.group_size = round};
    nvrtc->image_prefix = pagejit_stub::kRefusedImage;
    ASSERT_TRUE(make_engine()->precompile(spec, *parse_target("sm_90a")));
    nvrtc->image_prefix = "good";
    auto engine = make_engine();
    run_in_threads(8, [&](int) { prepare(*engine, spec); });
    ASSERT_EQ(nvrtc->compiles, 2 * round);
    ASSERT_EQ(engine->stats().driver_rejects, 1u);
  }
}

TEST_F(EngineTest, ThreadsWithDifferentSpecsAndEnginesDoNotDisturbEachOther) {
  auto first = make_engine();
  auto second = make_engine();
  run_in_threads(8, [&](int i) {
    for (int group = 1; group <= 16; ++group) {
      Engine& engine = (i + group) % 2 == 0 ? *first : *second;
      EXPECT_TRUE(prepare(engine, {.group_size = group}).launch(legal_args(), nullptr));
    }
  });
  EXPECT_LE(nvrtc->compiles, 32);
  EXPECT_GE(nvrtc->compiles, 16);
}

TEST_F(EngineTest, ThousandsOfShapesStayWithinTheResidentBound) {
  max_resident_kernels = 64;
  EngineOptions memory_only = options();
  memory_only.disk_cache = false;
  memory_only.log_level = LogLevel::kOff;
  auto engine = make_engine(memory_only);
  int prepared = 0;
  for (int block_size = 1; block_size <= 20; ++block_size) {
    for (int group_size = 1; group_size <= 100; ++group_size, ++prepared) {
      const Kernel kernel = prepare(*engine, {.block_size = block_size, .group_size = group_size});
      ASSERT_TRUE(kernel.launch(legal_args(), nullptr));
      ASSERT_LE(script->live_libraries(), 65);
    }
  }
  EXPECT_EQ(prepared, 2000);
  EXPECT_FALSE(script->unloaded_under_work());
  engine.reset();
  EXPECT_EQ(script->live_libraries(), 0);
}

TEST_F(EngineTest, KernelsWithHandlesAreNeverDropped) {
  max_resident_kernels = 2;
  auto engine = make_engine();
  std::vector<Kernel> held;
  for (int group = 1; group <= 8; ++group) held.push_back(prepare(*engine, {.group_size = group}));
  EXPECT_EQ(script->live_libraries(), 8);
  for (const Kernel& kernel : held) EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
  held.clear();
  prepare(*engine, {.group_size = 9});
  EXPECT_LE(script->live_libraries(), 3);
}

TEST_F(EngineTest, TheLeastRecentlyPreparedIsDroppedFirst) {
  max_resident_kernels = 2;
  auto engine = make_engine();
  prepare(*engine, {.group_size = 1});
  prepare(*engine, {.group_size = 2});
  prepare(*engine, {.group_size = 1});
  prepare(*engine, {.group_size = 3});  // drops 2
  const uint64_t loads = script->calls("cuLibraryLoadData");
  prepare(*engine, {.group_size = 1});
  EXPECT_EQ(script->calls("cuLibraryLoadData"), loads);
  prepare(*engine, {.group_size = 2});
  EXPECT_EQ(script->calls("cuLibraryLoadData"), loads + 1);
}

}  // namespace
}  // namespace pagejit
