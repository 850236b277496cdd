// Runs the conformance cases on the driver that the environment names: a GPU by default, the
// emulator with PAGEJIT_DRIVER=emulator. Skips where there is no driver.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>

#include "generator/renderer.h"
#include "runtime/jit/compiler.h"
#include "runtime/target_ladder.h"
#include "tests/templates/device_function_cases.h"
#include "tools/check/device_buffer.h"

namespace pagejit::testing {
namespace {

constexpr int kSharedWords = 2048;

// Any bits, but always the same.
Words input_words() {
  std::mt19937 random(1);
  Words words;
  for (int i = 0; i < kInputWords; ++i) words.push_back(static_cast<uint32_t>(random()));
  return words;
}

class DeviceFunctionTest : public ::testing::TestWithParam<DeviceFunctionCase> {
 protected:
  static void SetUpTestSuite() {
    const Result<EngineOptions> options = EngineOptions::from_environment();
    ASSERT_TRUE(options) << options.status().to_string();
    Result<std::unique_ptr<DeviceSession>> opened = DeviceSession::open(*options);
    status_ = opened.status();
    if (!opened) return;
    session_ = std::move(*opened).release();
    compiler_ = session_->is_emulator()
                    ? make_host_compiler(options->host_compiler, options->host_build)
                    : make_nvrtc_compiler(options->nvrtc_path);
    int major = 0;
    int minor = 0;
    const Driver& driver = session_->driver();
    ASSERT_TRUE(
        driver.check(driver.cuDeviceGetAttribute(
                         &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, session_->device()),
                     "cuDeviceGetAttribute"));
    ASSERT_TRUE(
        driver.check(driver.cuDeviceGetAttribute(
                         &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, session_->device()),
                     "cuDeviceGetAttribute"));
    target_ = session_->is_emulator()
                  ? Target::host()
                  : Target{TargetKind::kCuda, major * 10 + minor, TargetVariant::kPlain};
  }

  static void TearDownTestSuite() {
    delete session_;
    session_ = nullptr;
    compiler_.reset();
  }

  static Words run(const DeviceFunctionCase& test, const Words& in) {
    Words out(static_cast<size_t>(test.num_outputs), 0xcdcdcdcd);
    run_into(test, in, out);
    return out;
  }

  static void run_into(const DeviceFunctionCase& test, const Words& in, Words& out) {
    KernelSource source;
    source.kernel_name = "conformance";
    source.target = target_;
    Result<std::string> text = with_device_functions(target_, kernel_text(test), test.pdl);
    ASSERT_TRUE(text) << text.status().to_string();
    source.text = *text;
    const Result<CompiledImage> image = compiler_->compile(source);
    ASSERT_TRUE(image) << image.status().to_string() << "\n" << image.status().detail();

    const Driver& driver = session_->driver();
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    ASSERT_EQ(driver.cuLibraryLoadData(&library, image->image.data(), nullptr, nullptr, 0, nullptr,
                                       nullptr, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(driver.cuLibraryGetKernel(&kernel, library, "conformance"), CUDA_SUCCESS);
    auto in_buffer = DeviceBuffer::copy_of(*session_, in.data(), in.size() * 4);
    ASSERT_TRUE(in_buffer) << in_buffer.status().to_string();
    auto out_buffer = DeviceBuffer::copy_of(*session_, out.data(), out.size() * 4);
    ASSERT_TRUE(out_buffer) << out_buffer.status().to_string();

    struct {
      const void* in;
      void* out;
    } params = {in_buffer->data(), out_buffer->data()};
    void* arguments[] = {&params};
    CUlaunchConfig launch = {};
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
    launch.blockDimX = static_cast<unsigned>(test.num_threads);
    launch.blockDimY = launch.blockDimZ = 1;
    launch.sharedMemBytes = kSharedWords * 4;
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    launch.attrs = &attribute;
    launch.numAttrs = test.pdl ? 1 : 0;
    EXPECT_EQ(
        driver.cuLaunchKernelEx(&launch, reinterpret_cast<CUfunction>(kernel), arguments, nullptr),
        CUDA_SUCCESS);
    const Status finished = session_->synchronize();
    EXPECT_TRUE(finished) << finished.to_string();
    if (finished) {
      const Status downloaded = out_buffer->download(0, out.data(), out.size() * 4);
      EXPECT_TRUE(downloaded) << downloaded.to_string();
    }
    driver.cuLibraryUnload(library);
  }

  static DeviceSession* session_;
  static std::shared_ptr<Compiler> compiler_;
  static Target target_;
  static Status status_;
};

DeviceSession* DeviceFunctionTest::session_ = nullptr;
std::shared_ptr<Compiler> DeviceFunctionTest::compiler_;
Target DeviceFunctionTest::target_;
Status DeviceFunctionTest::status_;

TEST_P(DeviceFunctionTest, DoesWhatThePtxIsaSays) {
  if (session_ == nullptr) {
    const char* asked = std::getenv("PAGEJIT_DRIVER");
    ASSERT_TRUE(asked == nullptr || *asked == '\0')
        << "PAGEJIT_DRIVER=" << asked << ": " << status_.to_string();
    GTEST_SKIP() << status_.to_string();
  }
  const DeviceFunctionCase& test = GetParam();
  if (target_.sm < test.least_sm) GTEST_SKIP() << target_.to_string() << " has no such instruction";
  const Words in = input_words();
  const Words expected = test.expected(in);
  ASSERT_EQ(expected.size(), static_cast<size_t>(test.num_outputs));
  const Words got = run(test, in);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (test.tolerance == 0) {
      ASSERT_EQ(got[i], expected[i])
          << "word " << i << std::hex << ": 0x" << got[i] << " instead of 0x" << expected[i];
    } else {
      const double want = std::bit_cast<float>(expected[i]);
      const double have = std::bit_cast<float>(got[i]);
      ASSERT_LE(std::abs(have - want), test.tolerance * std::abs(want))
          << "word " << i << ": " << have << " instead of " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFunctionTest, ::testing::ValuesIn(device_function_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit::testing
