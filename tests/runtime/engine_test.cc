// From a spec to a handle: the order of memory, disk and compile, every failure of the driver, and
// what is counted.
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr KernelSpec kSpec{.group_size = 4};

TEST_F(EngineTest, FirstPrepareCompilesForTheExactTarget) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  const KernelInfo& info = kernel.info();
  EXPECT_EQ(info.target.to_string(), "sm_90a");
  EXPECT_EQ(info.origin, ImageOrigin::kCompiled);
  EXPECT_EQ(info.kernel_name, "fake_kernel");
  EXPECT_EQ(info.registers, 96);
  EXPECT_EQ(info.shared_bytes, 64 * 1024 + 16);
  EXPECT_EQ(info.threads_per_cta, 128);
  EXPECT_DOUBLE_EQ(info.compile_ms, 12.5);
  EXPECT_GT(info.prepare_ms, 0);
  EXPECT_GT(info.image_bytes, 0u);
  EXPECT_EQ(info.key.size(), 64u + 1 + 8);
  EXPECT_EQ(kernel.spec(), kSpec);
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(host->compiles, 0);
}

TEST_F(EngineTest, SecondPrepareComesFromMemoryAndLoadsNothing) {
  auto engine = make_engine();
  prepare(*engine, kSpec);
  const uint64_t loads = script->calls("cuLibraryLoadData");
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kMemory);
  EXPECT_EQ(script->calls("cuLibraryLoadData"), loads);
  EXPECT_EQ(script->calls("cuKernelSetAttribute"), 1u);
  EXPECT_EQ(script->calls("cuFuncLoad"), 1u);
  EXPECT_EQ(engine->stats().memory_hits, 1u);
  EXPECT_EQ(engine->stats().compiles, 1u);
}

TEST_F(EngineTest, AnotherEngineReadsFromDiskWithoutTheCompiler) {
  prepare(*make_engine(), kSpec);
  nvrtc->target_checks = 0;
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_EQ(kernel.info().origin, ImageOrigin::kDisk);
  EXPECT_EQ(kernel.info().registers, 96);
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(nvrtc->target_checks, 0) << "that would load NVRTC";
  EXPECT_EQ(engine->stats().disk_hits, 1u);
}

TEST_F(EngineTest, WithoutACompilerAnyCompilersEntryIsTaken) {
  prepare(*make_engine(), kSpec);
  nvrtc->available = false;
  auto engine = make_engine();
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kDisk);

  Result<Kernel> other = engine->prepare({.group_size = 8}, 0);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.status().code(), StatusCode::kCompilerUnavailable);
}

TEST_F(EngineTest, AnotherCompilerIsAMiss) {
  prepare(*make_engine(), kSpec);
  nvrtc->identity_text = "fake 2.0";
  EXPECT_EQ(prepare(*make_engine(), kSpec).info().origin, ImageOrigin::kCompiled);
}

TEST_F(EngineTest, WithoutADiskCacheEveryEngineCompiles) {
  EngineOptions memory_only = options();
  memory_only.disk_cache = false;
  prepare(*make_engine(memory_only), kSpec);
  prepare(*make_engine(memory_only), kSpec);
  EXPECT_EQ(nvrtc->compiles, 2);
  EXPECT_FALSE(std::filesystem::exists(memory_only.cache_dir));
}

TEST_F(EngineTest, TwoEnginesAreIndependent) {
  auto first = make_engine();
  auto second = make_engine();
  const Kernel a = prepare(*first, kSpec);
  const Kernel b = prepare(*second, kSpec);
  EXPECT_EQ(script->live_libraries(), 2);
  first.reset();
  EXPECT_TRUE(b.launch(legal_args(), nullptr));
  EXPECT_TRUE(a.launch(legal_args(), nullptr)) << "a handle outlives its engine";
}

TEST_F(EngineTest, SecondDeviceOfTheSameKindSharesImageAndModule) {
  const pagejit_stub::Device devices[] = {{.sm = 90}, {.sm = 90}};
  script->set_devices(devices, 2);
  EngineOptions memory_only = options();
  memory_only.disk_cache = false;
  auto engine = make_engine(memory_only);
  prepare(*engine, kSpec, 0);
  EXPECT_EQ(prepare(*engine, kSpec, 1).info().origin, ImageOrigin::kMemory);
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(script->live_libraries(), 1);
  EXPECT_EQ(script->calls("cuKernelSetAttribute"), 2u) << "once per device";
}

TEST_F(EngineTest, TargetsTheCompilerDoesNotKnowAreSkipped) {
  nvrtc->unknown_targets = {"sm_90a"};
  auto engine = make_engine();
  EXPECT_EQ(prepare(*engine, kSpec).info().target.to_string(), "sm_90");
  EXPECT_EQ(engine->target_of_device(0)->to_string(), "sm_90");
  for (const char* other : {"sm_90", "compute_90", "compute_89", "compute_88", "compute_86",
                            "compute_80", "compute_75"}) {
    nvrtc->unknown_targets.insert(other);
  }
  Result<Kernel> none = engine->prepare({.group_size = 8}, 0);
  EXPECT_EQ(none.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(none.status().message(), HasSubstr("sm_90a"));
}

TEST_F(EngineTest, GpusOfEveryKindGetTheirTarget) {
  for (auto [sm, name] : {std::pair(75, "sm_75"),
                          {80, "sm_80"},
                          {86, "sm_86"},
                          {87, "sm_87"},
                          {89, "sm_89"},
                          {100, "sm_100a"},
                          {103, "sm_103a"},
                          {110, "sm_110a"},
                          {121, "sm_121a"}}) {
    const pagejit_stub::Device device{.sm = sm};
    script->set_devices(&device, 1);
    EXPECT_EQ(make_engine()->target_of_device(0)->to_string(), name);
  }
}

TEST_F(EngineTest, GpuBeforeTuringIsUnsupported) {
  const pagejit_stub::Device device{.sm = 72};
  script->set_devices(&device, 1);
  Result<Kernel> kernel = make_engine()->prepare(kSpec, 0);
  EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(kernel.status().message(), HasSubstr("7.5 or later"));
}

TEST_F(EngineTest, EmulatorTakesHostKernelsOfItsClaimedGpu) {
  EngineOptions emulated = options();
  emulated.driver = "emulator";
  emulated.emulator_path = PAGEJIT_STUB_EMULATOR;
  const Kernel kernel = prepare(*make_engine(emulated), kSpec);
  EXPECT_TRUE(kernel.info().target.is_host());
  EXPECT_EQ(kernel.info().target.sm, 90);
  EXPECT_EQ(host->compiles, 1);
  EXPECT_EQ(nvrtc->compiles, 0);
}

TEST_F(EngineTest, InvalidSpecIsRefusedBeforeTheDriverIsOpened) {
  EngineOptions broken = options();
  broken.driver = "/nowhere/libcuda.so.1";
  Result<Kernel> kernel = make_engine(broken)->prepare({.head_size = 100}, 0);
  EXPECT_EQ(kernel.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(kernel.status().message(), HasSubstr("head_size 100"));
}

TEST_F(EngineTest, WithoutADriverPrepareFailsAndPrecompileWorks) {
  EngineOptions broken = options();
  broken.driver = "/nowhere/libcuda.so.1";
  auto engine = make_engine(broken);
  EXPECT_EQ(engine->prepare(kSpec, 0).status().code(), StatusCode::kDriverUnavailable);
  Result<KernelInfo> info = engine->precompile(kSpec, *parse_target("sm_90a"));
  ASSERT_TRUE(info) << info.status().to_string();
  EXPECT_EQ(info->origin, ImageOrigin::kCompiled);
  EXPECT_EQ(script->total_calls(), 0u);
  // What was precompiled is what prepare() looks for.
  EXPECT_EQ(prepare(*make_engine(), kSpec).info().origin, ImageOrigin::kDisk);
}

TEST_F(EngineTest, RenderReturnsTheSourceThatIsCompiled) {
  Result<std::string> text = make_engine()->render(kSpec, Target::host());
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("group_size=4"));
}

TEST_F(EngineTest, CompileFailureKeepsItsDetailAndIsNotRepeated) {
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile", "the log");
  auto engine = make_engine();
  for (int i = 0; i < 3; ++i) {
    Result<Kernel> kernel = engine->prepare(kSpec, 0);
    EXPECT_EQ(kernel.status().code(), StatusCode::kCompileFailed);
    EXPECT_EQ(kernel.status().detail(), "the log");
  }
  EXPECT_EQ(nvrtc->compiles, 1);
  EXPECT_EQ(engine->stats().compile_failures, 1u);
}

TEST_F(EngineTest, DeviceNumbersAreChecked) {
  auto engine = make_engine();
  EXPECT_EQ(engine->prepare(kSpec, 1).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(engine->prepare(kSpec, 1).status().message(), HasSubstr("the driver has 1 device"));
  EXPECT_EQ(engine->prepare(kSpec, -2).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine->prepare(kSpec, -1).status().message(), HasSubstr("current context"));
}

TEST_F(EngineTest, CurrentContextIsUsedAndLeftAsItWas) {
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  const CUcontext mine = script->make_context(0);
  driver->cuCtxPushCurrent(mine);
  prepare(*make_engine(), kSpec, -1);
  CUcontext now = nullptr;
  driver->cuCtxPopCurrent(&now);
  EXPECT_EQ(now, mine);
  driver->cuCtxGetCurrent(&now);
  EXPECT_EQ(now, nullptr);
  EXPECT_EQ(script->calls("cuDevicePrimaryCtxRetain"), 0u);
}

TEST_F(EngineTest, EveryNewContextGetsTheCodeLoadedOnce) {
  auto driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  auto engine = make_engine();
  for (int i = 0; i < 2; ++i) {
    driver->cuCtxPushCurrent(script->make_context(0));
    prepare(*engine, kSpec, -1);
    prepare(*engine, kSpec, -1);
    CUcontext popped = nullptr;
    driver->cuCtxPopCurrent(&popped);
  }
  EXPECT_EQ(script->calls("cuFuncLoad"), 2u);
  EXPECT_EQ(script->calls("cuLibraryLoadData"), 1u);
}

TEST_F(EngineTest, EveryDriverFailureOfPrepareSurfacesWithItsName) {
  for (const char* function :
       {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
        "cuCtxGetId", "cuCtxPushCurrent", "cuLibraryLoadData", "cuLibraryGetKernel",
        "cuKernelSetAttribute", "cuKernelGetFunction", "cuFuncLoad",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor"}) {
    auto engine = make_engine();
    script->fail(function, CUDA_ERROR_OUT_OF_MEMORY);
    Result<Kernel> kernel = engine->prepare(kSpec, 0);
    ASSERT_FALSE(kernel) << function;
    EXPECT_EQ(kernel.status().code(), StatusCode::kDriverError) << function;
    EXPECT_THAT(kernel.status().message(),
                AllOf(HasSubstr(function), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY (2)")));
    script->fail(function, CUDA_SUCCESS, 0);
    EXPECT_TRUE(engine->prepare(kSpec, 0)) << function << ": the engine recovers";
  }
  EXPECT_EQ(make_engine()->stats().driver_rejects, 0u);
}

TEST_F(EngineTest, AKernelThatFitsOnNoSmIsUnsupported) {
  script->set_occupancy(0);
  Result<Kernel> kernel = make_engine()->prepare(kSpec, 0);
  EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(kernel.status().message(), HasSubstr("65536 bytes of shared memory"));
}

TEST_F(EngineTest, DynamicSharedMemoryIsAskedForOnce) {
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_EQ(script->max_dynamic_shared(), 64 * 1024);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
  EXPECT_EQ(script->calls("cuKernelSetAttribute"), 1u);
}

TEST_F(EngineTest, StoredImageThatTheDriverRefusesIsCompiledAnewOnce) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  ASSERT_TRUE(make_engine()->precompile(kSpec, *parse_target("sm_90a")));
  nvrtc->image_prefix = "good";
  auto engine = make_engine();
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kCompiled);
  EXPECT_EQ(nvrtc->compiles, 2);
  EXPECT_EQ(engine->stats().driver_rejects, 1u);
  EXPECT_TRUE(logged(LogLevel::kWarning, "the driver refused the stored kernel"));
  // The good image has replaced the refused one.
  EXPECT_EQ(prepare(*make_engine(), kSpec).info().origin, ImageOrigin::kDisk);
  EXPECT_EQ(nvrtc->compiles, 2);
}

TEST_F(EngineTest, FreshImageThatTheDriverRefusesIsAnError) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  auto engine = make_engine();
  Result<Kernel> kernel = engine->prepare(kSpec, 0);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.status().code(), StatusCode::kDriverError);
  EXPECT_THAT(kernel.status().message(), HasSubstr("CUDA_ERROR_INVALID_IMAGE"));
  EXPECT_EQ(nvrtc->compiles, 2) << "a cubin and PTX";
}

TEST_F(EngineTest, RefusedStoredImageWithoutACompilerSaysBoth) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  ASSERT_TRUE(make_engine()->precompile(kSpec, *parse_target("sm_90a")));
  nvrtc->available = false;
  Result<Kernel> kernel = make_engine()->prepare(kSpec, 0);
  EXPECT_EQ(kernel.status().code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(kernel.status().message(),
              AllOf(HasSubstr("CUDA_ERROR_INVALID_IMAGE"), HasSubstr("there is no compiler")));
}

TEST_F(EngineTest, UnusableCacheDirectoryCostsOneWarningAndNothingElse) {
  EngineOptions unusable = options();
  unusable.cache_dir = "/proc/pagejit";
  auto engine = make_engine(unusable);
  prepare(*engine, kSpec);
  prepare(*engine, {.group_size = 8});
  EXPECT_EQ(engine->stats().compiles, 2u);
}

TEST_F(EngineTest, NegativeThreadCountIsRefused) {
  EngineOptions bad = options();
  bad.compile_threads = -1;
  Result<std::shared_ptr<Engine>> engine = create_engine(bad, dependencies());
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.status().message(), HasSubstr("compile_threads -1"));
}

}  // namespace
}  // namespace pagejit
