// The rules of occupancy against the driver's answer, for kernels and for sizes of shared memory.
// On a GPU; skipped without one.
#include <gtest/gtest.h>

#include "generator/families.h"
#include "generator/renderer.h"
#include "generator/spec_parser.h"
#include "runtime/jit/compiler.h"
#include "runtime/target_ladder.h"
#include "tools/check/device_buffer.h"
#include "tools/inspect/cubin_file.h"
#include "tools/inspect/occupancy.h"

namespace pagejit::inspect {
namespace {

class OccupancyOnGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<EngineOptions> options = EngineOptions::from_environment();
    ASSERT_TRUE(options) << options.status().to_string();
    options_ = *options;
    auto session = DeviceSession::open(options_);
    if (!session || (*session)->is_emulator()) GTEST_SKIP() << "no GPU to run on";
    session_ = std::move(*session);
    compiler_ = make_nvrtc_compiler(options_.nvrtc_path);
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      EXPECT_EQ(driver().cuDeviceGetAttribute(&value, which, session_->device()), CUDA_SUCCESS);
      return value;
    };
    sm_ = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
          attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  }
  const Driver& driver() const { return session_->driver(); }

  // The best target of the GPU that has a plan and that NVRTC serves.
  Result<CompiledImage> compile(const AnySpec& spec, KernelSource* source) {
    const auto ladder = target_ladder(sm_);
    if (!ladder) return ladder.status();
    Status last = ladder.status();
    for (const Target& target : *ladder) {
      const Result<AnyConfig> config = plan_any(spec, target);
      if (!config) {
        last = config.status();
        continue;
      }
      Result<KernelSource> rendered = render(*config);
      if (!rendered) return rendered.status();
      Result<CompiledImage> image = compiler_->compile(*rendered);
      if (image) *source = *rendered;
      if (image || image.status().code() != StatusCode::kUnsupported) return image;
      last = image.status();
    }
    return last;
  }

  EngineOptions options_;
  std::unique_ptr<DeviceSession> session_;
  std::shared_ptr<Compiler> compiler_;
  int sm_ = 0;
};

TEST_F(OccupancyOnGpuTest, IsWhatTheDriverSays) {
  for (const char* text :
       {"decode head_size=128 block_size=16 group_size=4",
        "decode head_size=256 block_size=16 group_size=8",
        "many head_size=128 block_size=16 group_size=4 causal=1",
        "decode q=f16 kv=fp8_e4m3 out=f16 head_size=64 block_size=16 group_size=71",
        "decode head_size=576 head_size_v=512 block_size=64 group_size=16 latent=1"}) {
    const Result<AnySpec> spec = parse_any_spec(text);
    ASSERT_TRUE(spec) << spec.status().to_string();
    KernelSource source;
    const Result<CompiledImage> image = compile(*spec, &source);
    ASSERT_TRUE(image) << image.status().to_string();
    const Result<CubinFile> cubin = read_cubin(image->image);
    ASSERT_TRUE(cubin) << cubin.status().to_string();
    const CubinKernel& kernel = cubin->kernels.front();

    CUlibrary library = nullptr;
    CUkernel loaded = nullptr;
    ASSERT_EQ(driver().cuLibraryLoadData(&library, image->image.data(), nullptr, nullptr, 0,
                                         nullptr, nullptr, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(driver().cuLibraryGetKernel(&loaded, library, kernel.symbol.c_str()), CUDA_SUCCESS);
    const int own_bytes = shared_bytes(source.config);
    // From none to its own, which the kernel would not run with, but of which the driver tells.
    for (const int bytes : {0, own_bytes / 7, own_bytes / 3, own_bytes / 2, own_bytes}) {
      ASSERT_EQ(driver().cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                              bytes, loaded, session_->device()),
                CUDA_SUCCESS);
      const int threads = threads_per_cta(source.config);
      int by_driver = 0;
      ASSERT_EQ(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &by_driver, reinterpret_cast<CUfunction>(loaded), threads,
                    static_cast<size_t>(bytes)),
                CUDA_SUCCESS);
      const Result<Occupancy> ours = occupancy_of(
          {threads, kernel.registers, kernel.static_shared_bytes + bytes, kernel.barriers}, sm_);
      ASSERT_TRUE(ours) << ours.status().to_string();
      EXPECT_EQ(ours->ctas, by_driver) << text << ", " << bytes << " B";
    }
    driver().cuLibraryUnload(library);
  }
}

}  // namespace
}  // namespace pagejit::inspect
