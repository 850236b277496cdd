#include "runtime/jit/nvrtc_compiler.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const Target kSm80{TargetKind::kCuda, 80, TargetVariant::kPlain};
const Target kSm90a{TargetKind::kCuda, 90, TargetVariant::kExact};

TEST(NvrtcTargetTest, VariantsFollowFromTheArchitectures) {
  const std::vector<int> archs = {80, 90, 100, 120};
  const auto accepts = [&](int sm, TargetVariant variant, NvrtcVersion version) {
    return check_nvrtc_target({TargetKind::kCuda, sm, variant}, version, archs).is_ok();
  };
  EXPECT_TRUE(accepts(80, TargetVariant::kPlain, {12, 4}));
  EXPECT_TRUE(accepts(90, TargetVariant::kExact, {12, 4}));
  EXPECT_TRUE(accepts(100, TargetVariant::kExact, {12, 8}));
  EXPECT_TRUE(accepts(100, TargetVariant::kFamily, {12, 9}));
  EXPECT_FALSE(accepts(100, TargetVariant::kFamily, {12, 8}));
  EXPECT_FALSE(accepts(90, TargetVariant::kFamily, {13, 0}));
  EXPECT_FALSE(accepts(80, TargetVariant::kExact, {13, 0}));
  EXPECT_FALSE(accepts(86, TargetVariant::kPlain, {13, 0}));
  EXPECT_FALSE(check_nvrtc_target(Target::host(), {13, 0}, archs));
}

TEST(NvrtcTargetTest, RefusalSaysWhatIsServed) {
  const Status status =
      check_nvrtc_target({TargetKind::kCuda, 103, TargetVariant::kFamily}, {12, 9}, {80, 90, 100});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "target sm_103f: NVRTC 12.9 compiles for sm_ 80 90 90a 100 100a 100f");
}

// With the stand-ins.
class NvrtcCompilerStubTest : public ::testing::Test {
 protected:
  std::shared_ptr<Compiler> compiler(const std::string& stub, const std::string& version) {
    const std::string folder = "nvrtc-" + version;
    root_.copy(stub, folder + "/libnvrtc.so.12");
    root_.copy(Stubs::builtins(), folder + "/libnvrtc-builtins.so." + version);
    return make_nvrtc_compiler(root_ / folder, 1, environment_of({}));
  }
  TempFolder root_;
};

TEST_F(NvrtcCompilerStubTest, NoCacheOnlyWhereItExistsAndNeverInTheKey) {
  auto older = compiler(Stubs::nvrtc_12_7(), "12.7");
  auto newer = compiler(Stubs::nvrtc_12_11(), "12.11");
  EXPECT_EQ(older->options(kSm90a), newer->options(kSm90a));
  Result<CompiledImage> from_older = older->compile(source_of("text", kSm90a));
  Result<CompiledImage> from_newer = newer->compile(source_of("text", kSm90a));
  ASSERT_TRUE(from_older) << from_older.status().to_string();
  ASSERT_TRUE(from_newer) << from_newer.status().to_string();
  EXPECT_EQ(from_older->log,
            "tiny.cu\n--gpu-architecture=sm_90a\n--std=c++20\n--minimal\n--ptxas-options=-v\n");
  EXPECT_EQ(from_newer->log, from_older->log + "--no-cache\n");
  EXPECT_EQ(from_older->image, "text");
}

TEST_F(NvrtcCompilerStubTest, ImageNamesItsCompiler) {
  auto nvrtc = compiler(Stubs::nvrtc_12_11(), "12.11");
  Result<std::string> identity = nvrtc->identity();
  ASSERT_TRUE(identity) << identity.status().to_string();
  EXPECT_THAT(*identity, StartsWith("nvrtc 12.11 build-id "));
  EXPECT_EQ(nvrtc->compile(source_of("text", kSm80))->compiler_identity, *identity);
}

TEST_F(NvrtcCompilerStubTest, ErrorsAreSorted) {
  auto nvrtc = compiler(Stubs::nvrtc_12_11(), "12.11");
  const auto error = [&](const std::string& text, Target target) {
    Result<CompiledImage> image = nvrtc->compile(source_of(text, target));
    EXPECT_FALSE(image);
    return image.status();
  };
  EXPECT_EQ(error("FAIL 6", kSm80).code(), StatusCode::kCompileFailed);
  EXPECT_EQ(error("FAIL 5", kSm80).code(), StatusCode::kCompileFailed);
  // Out of memory and missing builtins are not the source's fault.
  EXPECT_EQ(error("FAIL 1", kSm80).code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(error("FAIL 7", kSm80).message(),
              HasSubstr("NVRTC 12.11: NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"));
  EXPECT_EQ(error("", kSm80).code(), StatusCode::kCompilerUnavailable);
  EXPECT_EQ(error("x", Target::host()).code(), StatusCode::kUnsupported);
  EXPECT_EQ(error("x", {TargetKind::kCuda, 75, TargetVariant::kPlain}).code(),
            StatusCode::kUnsupported);
}

TEST_F(NvrtcCompilerStubTest, PtxComesWithItsClosingNullAndOptionsOfItsOwn) {
  auto nvrtc = compiler(Stubs::nvrtc_12_11(), "12.11");
  const Target ptx{TargetKind::kCuda, 80, TargetVariant::kPtx};
  Result<CompiledImage> image = nvrtc->compile(source_of("text", ptx));
  ASSERT_TRUE(image) << image.status().to_string();
  EXPECT_EQ(image->image, std::string("ptx text") + '\0');
  EXPECT_THAT(nvrtc->options(ptx),
              ElementsAre("--gpu-architecture=compute_80", "--std=c++20", "--minimal"));
  EXPECT_FALSE(nvrtc->check_target({TargetKind::kCuda, 75, TargetVariant::kPtx}));
}

TEST_F(NvrtcCompilerStubTest, ARunningCompileIsCancelledByTheFlowCallback) {
  auto nvrtc = compiler(Stubs::nvrtc_12_11(), "12.11");
  std::stop_source stop;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  const Status status =
      nvrtc->compile(source_of("HANG", kSm80), {.stop = stop.get_token()}).status();
  canceller.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(nvrtc->compile(source_of("text", kSm80)));
}

TEST_F(NvrtcCompilerStubTest, OlderOnesRunToTheirEnd) {
  auto nvrtc = compiler(Stubs::nvrtc_12_7(), "12.7");
  std::stop_source stop;
  // Without a callback the stand-in fails instead of waiting for one.
  EXPECT_EQ(nvrtc->compile(source_of("HANG", kSm80), {.stop = stop.get_token()}).status().code(),
            StatusCode::kCompilerUnavailable);
  EXPECT_TRUE(nvrtc->compile(source_of("text", kSm80), {.stop = stop.get_token()}));
}

TEST_F(NvrtcCompilerStubTest, MissingLibraryIsUnavailableEverywhere) {
  auto nvrtc = make_nvrtc_compiler(root_ / "absent", 1, environment_of({}));
  EXPECT_EQ(nvrtc->identity().status().code(), StatusCode::kCompilerUnavailable);
  EXPECT_EQ(nvrtc->check_target(kSm80).code(), StatusCode::kCompilerUnavailable);
  EXPECT_EQ(nvrtc->compile(source_of("x", kSm80)).status().code(),
            StatusCode::kCompilerUnavailable);
  EXPECT_EQ(nvrtc->options(kSm80).front(), "--gpu-architecture=sm_80");
}

// With the real library.
class NvrtcCompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PAGEJIT_NEEDS_NVRTC();
    compiler_ = make_nvrtc_compiler(real_nvrtc());
  }
  CompiledImage compile(const std::string& text, Target target) {
    Result<CompiledImage> image = compiler_->compile(source_of(text, target));
    EXPECT_TRUE(image) << image.status().to_string() << image.status().detail();
    return image ? *image : CompiledImage{};
  }
  std::shared_ptr<Compiler> compiler_;
};

TEST_F(NvrtcCompilerTest, CompilesToACubinWithAReport) {
  const CompiledImage image = compile(kTinyKernel, kSm90a);
  EXPECT_THAT(image.image, StartsWith("\x7f"
                                      "ELF"));
  EXPECT_THAT(image.log, HasSubstr("Compiling entry function 'tiny'"));
  EXPECT_GT(image.report.registers, 0);
  EXPECT_EQ(image.report.static_shared_bytes, 512);
  EXPECT_EQ(image.report.spill_store_bytes, 0);
  EXPECT_TRUE(image.report.warnings.empty());
  EXPECT_GT(image.compile_ms, 0);
  EXPECT_EQ(image.compiler_identity, *compiler_->identity());
  RecordProperty("compile_ms", std::to_string(image.compile_ms));
}

TEST_F(NvrtcCompilerTest, ReportsSpillsStackAndWarnings) {
  const CompiledImage image = compile(R"(
__device__ __noinline__ float pick(float* a, int i) { volatile float b[64]; b[i] = a[i]; return b[i ^ 1]; }
extern "C" __global__ void __launch_bounds__(1024, 2) tiny(float* p, int n) {
  int unused;
  float v[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = p[i * n];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 64; ++i) p[i] = v[63 - i] * v[i] + v[(i * 7) % 64];
  p[0] += pick(p, n);
})",
                                      kSm80);
  EXPECT_LE(image.report.registers, 32);
  EXPECT_GE(image.report.stack_bytes, 256);
  EXPECT_GT(image.report.spill_store_bytes, 0);
  EXPECT_GT(image.report.spill_load_bytes, 0);
  EXPECT_THAT(image.report.warnings, ElementsAre(HasSubstr("warning #177-D")));
}

TEST_F(NvrtcCompilerTest, AcceptsExactlyTheTargetsThatCompile) {
  int num_accepted = 0;
  for (int sm : {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121, 130}) {
    for (auto variant : {TargetVariant::kPlain, TargetVariant::kExact, TargetVariant::kFamily}) {
      const Target target{TargetKind::kCuda, sm, variant};
      const Status status = compiler_->check_target(target);
      Result<CompiledImage> image =
          compiler_->compile(source_of("extern \"C\" __global__ void tiny() {}", target));
      EXPECT_EQ(status.is_ok(), image.is_ok()) << target.to_string();
      if (!status) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr("compiles for sm_ "));
      }
      num_accepted += status.is_ok();
    }
  }
  EXPECT_GE(num_accepted, 6);
}

TEST_F(NvrtcCompilerTest, FailureCarriesLogOptionsAndNumberedSource) {
  Result<CompiledImage> image = compiler_->compile(
      source_of("extern \"C\" __global__ void tiny() {\n  absent();\n}\n", kSm80));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.status().code(), StatusCode::kCompileFailed);
  EXPECT_THAT(image.status().message(),
              AllOf(StartsWith("tiny for sm_80: NVRTC "),
                    HasSubstr("tiny.cu(2): error: identifier \"absent\" is undefined"),
                    Not(HasSubstr("\n"))));
  EXPECT_THAT(image.status().detail(),
              AllOf(HasSubstr("1 error detected"), HasSubstr("--gpu-architecture=sm_80"),
                    HasSubstr("   2 |   absent();")));
}

TEST_F(NvrtcCompilerTest, PtxasErrorsShowHereAndNotInTheDriver) {
  Result<CompiledImage> image = compiler_->compile(source_of(
      "extern \"C\" __global__ void tiny() { asm volatile(\"wgmma.fence.sync.aligned;\"); }",
      {TargetKind::kCuda, 90, TargetVariant::kPlain}));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.status().code(), StatusCode::kCompileFailed);
  EXPECT_THAT(image.status().message(), HasSubstr("wgmma.fence"));
}

TEST_F(NvrtcCompilerTest, FindsNoHeaderEvenBesideAToolkit) {
  Result<CompiledImage> image =
      compiler_->compile(source_of("#include <cuda_fp16.h>\n" + std::string(kTinyKernel), kSm80));
  ASSERT_FALSE(image);
  EXPECT_THAT(image.status().message(), HasSubstr("cuda_fp16.h"));
}

TEST_F(NvrtcCompilerTest, SameBytesAgainInParallelAndFromAnotherCompiler) {
  const std::string first = compile(kTinyKernel, kSm90a).image;
  auto other = make_nvrtc_compiler(real_nvrtc(), 4);
  std::vector<std::string> images(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < images.size(); ++i) {
    threads.emplace_back([&, i] {
      Result<CompiledImage> image = other->compile(source_of(kTinyKernel, kSm90a));
      if (image) images[i] = image->image;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& image : images) EXPECT_EQ(image, first);
}

TEST_F(NvrtcCompilerTest, CallerMayHaveASmallStack) {
  struct Call {
    Compiler* compiler;
    bool is_ok;
  } call{compiler_.get(), false};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* opaque) -> void* {
                  Call& c = *static_cast<Call*>(opaque);
                  c.is_ok = c.compiler->compile(source_of(kTinyKernel, kSm80)).is_ok();
                  return nullptr;
                },
                &call),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(call.is_ok);
}

TEST_F(NvrtcCompilerTest, OpensNeitherTheDriverNorADescriptor) {
  const std::string maps_before = read_all("/proc/self/maps");
  const int fds_before = num_open_fds();
  compile(kTinyKernel, kSm80);
  EXPECT_EQ(num_open_fds(), fds_before);
  if (maps_before.find("libcuda.so") == std::string::npos) {
    EXPECT_THAT(read_all("/proc/self/maps"), Not(HasSubstr("libcuda.so")));
  }
}

TEST_F(NvrtcCompilerTest, ForkedChildCompilesAgain) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no thread in a forked child";
#endif
  const std::string image = compile(kTinyKernel, kSm80).image;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Result<CompiledImage> again = compiler_->compile(source_of(kTinyKernel, kSm80));
    _exit(again && again->image == image ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Some seconds of work for the optimiser.
std::string long_kernel() {
  std::string text = "extern \"C\" __global__ void tiny(float* p) {\n  float x = p[0];\n";
  for (int i = 0; i < 20000; ++i) {
    text += "  x = x * p[" + std::to_string(i) + "] + p[(int)x & 4095];\n";
  }
  return text + "  p[0] = x;\n}\n";
}

TEST_F(NvrtcCompilerTest, ACancelledCompileEndsEarly) {
  std::stop_source stop;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const Result<CompiledImage> image =
      compiler_->compile(source_of(long_kernel(), kSm80), {.stop = stop.get_token()});
  canceller.join();
  const std::string identity = *compiler_->identity();
  if (identity < "nvrtc 12.8") {
    EXPECT_TRUE(image) << "it cannot be stopped";
  } else {
    EXPECT_EQ(image.status().code(), StatusCode::kCancelled) << image.status().to_string();
  }
  EXPECT_TRUE(compiler_->compile(source_of(kTinyKernel, kSm80))) << "the next one is as ever";
}

TEST_F(NvrtcCompilerTest, PtxNamesItsTargetAndEndsWithANull) {
  const CompiledImage ptx = compile(kTinyKernel, {TargetKind::kCuda, 80, TargetVariant::kPtx});
  EXPECT_THAT(ptx.image, HasSubstr(".target sm_80"));
  EXPECT_THAT(ptx.image, HasSubstr(".entry tiny"));
  ASSERT_FALSE(ptx.image.empty());
  EXPECT_EQ(ptx.image.back(), '\0');
}

}  // namespace
}  // namespace pagejit::jit
