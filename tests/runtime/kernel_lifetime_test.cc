// When a module is unloaded, and that no work can still run in it then.
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

constexpr KernelSpec kSpec{.group_size = 4};

TEST_F(EngineTest, LastOwnerSynchronisesBeforeUnloading) {
  auto engine = make_engine();
  Kernel kernel = prepare(*engine, kSpec);
  ASSERT_TRUE(kernel.launch(legal_args(), nullptr));
  engine.reset();
  EXPECT_EQ(script->live_libraries(), 1) << "the handle keeps it";
  Kernel copy = kernel;
  kernel = Kernel();
  EXPECT_EQ(script->live_libraries(), 1);
  EXPECT_EQ(script->calls("cuCtxSynchronize"), 0u);
  copy = Kernel();
  EXPECT_EQ(script->calls("cuCtxSynchronize"), 1u);
  EXPECT_EQ(script->live_libraries(), 0);
  EXPECT_FALSE(script->unloaded_under_work());
  EXPECT_EQ(script->live_primary_contexts(), 0);
}

TEST_F(EngineTest, KernelThatWasNeverLaunchedIsUnloadedWithoutSynchronising) {
  { prepare(*make_engine(), kSpec); }
  EXPECT_EQ(script->live_libraries(), 0);
  EXPECT_EQ(script->calls("cuCtxSynchronize"), 0u);
}

TEST_F(EngineTest, FailedSynchronisationLeavesTheModuleLoaded) {
  {
    auto engine = make_engine();
    ASSERT_TRUE(prepare(*engine, kSpec).launch(legal_args(), nullptr));
    script->fail("cuCtxSynchronize", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  EXPECT_EQ(script->calls("cuLibraryUnload"), 0u);
}

TEST_F(EngineTest, DriverThatIsShutDownIsTolerated) {
  auto engine = make_engine();
  Kernel kernel = prepare(*engine, kSpec);
  ASSERT_TRUE(kernel.launch(legal_args(), nullptr));
  for (const char* function : {"cuCtxGetId", "cuCtxPushCurrent", "cuCtxSynchronize",
                               "cuLibraryUnload", "cuDevicePrimaryCtxRelease"}) {
    script->fail(function, CUDA_ERROR_DEINITIALIZED);
  }
  engine.reset();
  kernel = Kernel();
}

TEST_F(EngineTest, DestroyedContextIsNotSynchronised) {
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  const CUcontext mine = script->make_context(0);
  auto engine = make_engine();
  driver->cuCtxPushCurrent(mine);
  ASSERT_TRUE(prepare(*engine, kSpec, -1).launch(legal_args(), nullptr));
  CUcontext popped = nullptr;
  driver->cuCtxPopCurrent(&popped);
  script->destroy_context(mine);
  engine.reset();
  EXPECT_EQ(script->calls("cuCtxSynchronize"), 0u);
  EXPECT_EQ(script->calls("cuLibraryUnload"), 1u);
}

TEST_F(EngineTest, EveryContextOfTheKernelIsSynchronised) {
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  auto engine = make_engine();
  for (int i = 0; i < 3; ++i) {
    driver->cuCtxPushCurrent(script->make_context(0));
    ASSERT_TRUE(prepare(*engine, kSpec, -1).launch(legal_args(), nullptr));
    CUcontext popped = nullptr;
    driver->cuCtxPopCurrent(&popped);
  }
  engine.reset();
  EXPECT_EQ(script->calls("cuCtxSynchronize"), 3u);
  EXPECT_FALSE(script->unloaded_under_work());
}

}  // namespace
}  // namespace pagejit
