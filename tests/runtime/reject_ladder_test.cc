// The steps down when a driver refuses what it is given: stored, compiled anew, PTX, an error that
// says everything; and GPUs that are newer than the compiler.
#include "tests/runtime/engine_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr KernelSpec kSpec{.group_size = 4};

class RejectLadderTest : public EngineTest {
 protected:
  void set_device(pagejit_stub::Device device) { script->set_devices(&device, 1); }
};

TEST_F(RejectLadderTest, AFreshCubinThatIsRefusedGivesWayToPtx) {
  nvrtc->refused_targets = {"sm_90a"};
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_EQ(kernel.info().target.to_string(), "compute_90");
  EXPECT_TRUE(kernel.launch(legal_args(), nullptr));
  EXPECT_EQ(nvrtc->compiles, 2);
  EXPECT_TRUE(logged(LogLevel::kWarning,
                     "driver 12.4 refused the kernel for sm_90a on Stub GPU (9.0): "
                     "cuLibraryLoadData failed: CUDA_ERROR_INVALID_IMAGE (200)"));
  EXPECT_TRUE(logged(LogLevel::kWarning, "PTX for compute_90 is taken instead"));
  prepare(*engine, kSpec);
  EXPECT_EQ(nvrtc->compiles, 2);
}

TEST_F(RejectLadderTest, PtxHasAnEntryOfItsOwn) {
  nvrtc->refused_targets = {"sm_90a"};
  const std::string ptx_key = prepare(*make_engine(), kSpec).info().key;
  nvrtc->refused_targets = {};
  nvrtc->unknown_targets = {"sm_90a", "sm_90"};
  auto engine = make_engine();
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_EQ(kernel.info().origin, ImageOrigin::kDisk);
  EXPECT_EQ(kernel.info().key, ptx_key);
  Result<KernelInfo> cubin = engine->precompile(kSpec, *parse_target("compute_90"));
  ASSERT_TRUE(cubin);
  EXPECT_EQ(cubin->key, ptx_key) << "PTX can be made ahead";
}

TEST_F(RejectLadderTest, AStoredAndThenAFreshCubinAreTriedBeforePtx) {
  nvrtc->refused_targets = {"sm_90a"};
  ASSERT_TRUE(make_engine()->precompile(kSpec, *parse_target("sm_90a")));
  auto engine = make_engine();
  EXPECT_EQ(prepare(*engine, kSpec).info().target.to_string(), "compute_90");
  EXPECT_EQ(nvrtc->compiles, 3);
  EXPECT_EQ(engine->stats().driver_rejects, 1u);
}

TEST_F(RejectLadderTest, StoredPtxThatIsRefusedIsCompiledAnewOnce) {
  nvrtc->refused_targets = {"sm_90a", "compute_90"};
  ASSERT_TRUE(make_engine()->precompile(kSpec, *parse_target("compute_90")));
  nvrtc->refused_targets = {"sm_90a"};
  auto engine = make_engine();
  EXPECT_EQ(prepare(*engine, kSpec).info().target.to_string(), "compute_90");
  EXPECT_EQ(nvrtc->compiles, 3);
  EXPECT_EQ(engine->stats().driver_rejects, 1u);
}

TEST_F(RejectLadderTest, WhenAllIsRefusedTheErrorNamesDriverTargetsAndGpu) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  script->set_driver_version(13000);
  const Status status = make_engine()->prepare(kSpec, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("driver 13.0 refused the kernel for compute_90 on Stub GPU (9.0)"),
                    HasSubstr("driver 13.0 refused the kernel for sm_90a on Stub GPU (9.0)"),
                    HasSubstr("CUDA_ERROR_INVALID_IMAGE (200)")));
  EXPECT_EQ(nvrtc->compiles, 2);
}

TEST_F(RejectLadderTest, WherePtxCannotBeMadeTheErrorSaysWhy) {
  nvrtc->refused_targets = {"sm_90a"};
  nvrtc->unknown_targets = {"compute_90", "compute_89", "compute_88",
                            "compute_86", "compute_80", "compute_75"};
  const Status status = make_engine()->prepare(kSpec, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("refused the kernel for sm_90a"),
                                      HasSubstr("and as PTX: compute_75: unknown")));
}

TEST_F(RejectLadderTest, AnotherFailureOfTheDriverIsNoRefusal) {
  script->fail("cuLibraryLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  const Status status = make_engine()->prepare(kSpec, 0).status();
  EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(RejectLadderTest, AGpuThatNobodyKnowsYetGetsPtxOfTheNewestKnownOne) {
  set_device({.sm = 130});
  for (const char* target : {"sm_130a", "sm_130f", "sm_130"}) nvrtc->unknown_targets.insert(target);
  auto engine = make_engine();
  EXPECT_EQ(engine->target_of_device(0)->to_string(), "compute_121");
  EXPECT_EQ(prepare(*engine, kSpec).info().target.to_string(), "compute_121");
  EXPECT_TRUE(logged(LogLevel::kWarning,
                     "PTX for compute_121 is taken on a GPU of compute capability 13.0"));
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(RejectLadderTest, RealPlansServeSuchAGpuToo) {
  set_device({.sm = 130, .max_shared_bytes = 227 * 1024});
  for (const char* target : {"sm_130a", "sm_130f", "sm_130"}) nvrtc->unknown_targets.insert(target);
  EngineDependencies parts = dependencies();
  parts.plan = plan_any;
  auto engine = *create_engine(options(), parts);
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_EQ(kernel.info().target.to_string(), "compute_121");
  // A spec that no GPU takes stays an error of the spec.
  EXPECT_EQ(engine->prepare(KernelSpec{.head_size = 100}, 0).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(RejectLadderTest, ACompilerOlderThanTheGpuMakesPtxThatFitsIt) {
  // A 12.0 GPU with a compiler that ends at 9.0, whose plans have more shared memory.
  set_device({.sm = 120, .max_shared_bytes = 99 * 1024});
  for (const char* number : {"121", "120", "110", "103", "100"}) {
    for (const std::string prefix : {"sm_", "compute_"}) {
      for (const char* variant : {"", "a", "f"}) {
        nvrtc->unknown_targets.insert(prefix + number + variant);
      }
    }
  }
  EngineDependencies parts = dependencies();
  parts.plan = [](const AnySpec& spec, const Target& target) {
    Result<AnyConfig> config = fake_plan(spec, target);
    if (target.sm == 90) {
      std::get<KernelConfig>(*config).attention.shared_bytes = 200 * 1024;
    }
    return config;
  };
  auto engine = *create_engine(options(), parts);
  EXPECT_EQ(prepare(*engine, kSpec).info().target.to_string(), "compute_89");
}

// A GPU of 8.6 runs cubins for 8.0, whose plans may have more shared memory than it has.
TEST_F(RejectLadderTest, AKernelThatDoesNotFitTheGpuIsNotTakenThoughItsTargetServes) {
  set_device({.sm = 86, .max_shared_bytes = 99 * 1024});
  EngineDependencies parts = dependencies();
  parts.plan = [](const AnySpec& spec, const Target& target) -> Result<AnyConfig> {
    const int group_size = std::get<KernelSpec>(spec).group_size;
    if (target.sm != 80 && group_size == 1) {
      return Status(StatusCode::kUnsupported, "no tile fits");
    }
    Result<AnyConfig> config = fake_plan(spec, target);
    if (target.sm == 80) {
      std::get<KernelConfig>(*config).attention.shared_bytes = 150 * 1024;
    }
    return config;
  };
  const KernelSpec none{.group_size = 1};
  const KernelSpec other{.group_size = 8};
  const Status status = (*create_engine(options(), parts))->prepare(none, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(nvrtc->compiles, 0);

  // A stored one for 8.0 is passed over: from a read-only directory where a compiler is there, and
  // where nothing may be compiled.
  EngineOptions given = options();
  given.cache_dir = directory.path() + "/given";
  for (const KernelSpec& spec : {none, other}) {
    ASSERT_TRUE((*create_engine(given, parts))->precompile(spec, *parse_target("sm_80")));
  }
  EngineOptions with = options();
  with.read_only_dirs = {given.cache_dir};
  EXPECT_EQ(prepare(**create_engine(with, parts), other).info().target.to_string(), "sm_86");
  with.cache_dir = directory.path() + "/other";
  with.jit = JitPolicy::kError;
  auto strict = *create_engine(with, parts);
  EXPECT_EQ(strict->prepare(other, 0).status().code(), StatusCode::kDenied);
  EXPECT_EQ(strict->prepare(none, 0).status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(strict->prepare(none, 0).status().message(), HasSubstr("no tile fits"));
}

TEST_F(RejectLadderTest, ASpecThatTheGpuHasNoPlanForGetsNoPtx) {
  EngineDependencies parts = dependencies();
  parts.plan = [](const AnySpec& spec, const Target& target) -> Result<AnyConfig> {
    if (target.sm >= 90) return Status(StatusCode::kUnsupported, "no tile fits");
    return fake_plan(spec, target);
  };
  const Status status = (*create_engine(options(), parts))->prepare(kSpec, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("no tile fits"), Not(HasSubstr("compute_"))));
  EXPECT_EQ(nvrtc->compiles, 0);
}

TEST_F(RejectLadderTest, StoredPtxIsFoundWhereNothingMayBeCompiled) {
  set_device({.sm = 130});
  ASSERT_TRUE(make_engine()->precompile(kSpec, *parse_target("compute_90")));
  EngineOptions strict = options();
  strict.jit = JitPolicy::kError;
  EXPECT_EQ(prepare(*make_engine(strict), kSpec).info().target.to_string(), "compute_90");
  const Status denied = make_engine(strict)->prepare({.group_size = 8}, 0).status();
  EXPECT_EQ(denied.code(), StatusCode::kDenied);
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(RejectLadderTest, TheEmulatorNeverTakesPtx) {
  EngineOptions emulated = options();
  emulated.driver = "emulator";
  emulated.emulator_path = PAGEJIT_STUB_EMULATOR;
  host->image_prefix = pagejit_stub::kRefusedImage;
  EXPECT_EQ(make_engine(emulated)->prepare(kSpec, 0).status().code(), StatusCode::kDriverError);
  EXPECT_EQ(nvrtc->compiles, 0);
  EXPECT_EQ(host->compiles, 1);
}

TEST_F(RejectLadderTest, AFailureThatMayPassIsKeptForAWhileAndAPermanentOneForGood) {
  auto now = std::chrono::steady_clock::time_point{};
  EngineDependencies parts = dependencies();
  parts.flights.clock = [&] { return now; };
  auto engine = *create_engine(options(), parts);
  nvrtc->failure = Status(StatusCode::kCompilerUnavailable, "out of memory");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(engine->prepare(kSpec, 0).status().code(), StatusCode::kCompilerUnavailable);
  }
  // One compile for each target that is tried, then none.
  const int compiles = nvrtc->compiles;
  EXPECT_FALSE(engine->prepare(kSpec, 0));
  EXPECT_EQ(nvrtc->compiles, compiles);
  now += std::chrono::seconds(5);
  nvrtc->failure = Status(StatusCode::kCompileFailed, "it does not compile");
  EXPECT_EQ(engine->prepare(kSpec, 0).status().code(), StatusCode::kCompileFailed);
  EXPECT_EQ(nvrtc->compiles, compiles + 1);
  now += std::chrono::hours(1000);
  nvrtc->failure = {};
  EXPECT_EQ(engine->prepare(kSpec, 0).status().code(), StatusCode::kCompileFailed);
  EXPECT_EQ(nvrtc->compiles, compiles + 1);
}

}  // namespace
}  // namespace pagejit
