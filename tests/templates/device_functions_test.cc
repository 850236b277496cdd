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

  void SetUp() override {
    if (session_ != nullptr) return;
    const char* asked = std::getenv("PAGEJIT_DRIVER");
    ASSERT_TRUE(asked == nullptr || *asked == '\0')
        << "PAGEJIT_DRIVER=" << asked << ": " << status_.to_string();
    GTEST_SKIP() << "no GPU to run on: " << status_.to_string();
  }

  static Words run(const DeviceFunctionCase& test, const Words& in) {
    Words out(static_cast<size_t>(test.num_outputs), 0xcdcdcdcd);
    run_into(test, in, out);
    return out;
  }

  // `prefix` stands between the device functions and the kernel.
  static void run_into(const DeviceFunctionCase& test, const Words& in, Words& out,
                       const std::string& prefix = "") {
    KernelSource source;
    source.kernel_name = "conformance";
    source.target = target_;
    Result<std::string> text = with_device_functions(target_, prefix + kernel_text(test), test.pdl);
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

// What sm_75 does by other functions, or on bits: without PTX of its own, so that it runs anywhere.
class Sm75FunctionTest : public DeviceFunctionTest {
 protected:
  // A case with `name` of sm_75's functions in place of the target's.
  static void expect_same(DeviceFunctionCase test, const char* file, const std::string& name) {
    std::string functions(embedded_templates().at(file));
    const std::string opening = "namespace dev {";
    functions.replace(functions.find(opening), opening.size(),
                      "namespace sm75 {\nusing namespace dev;");
    functions.erase(functions.find("#pragma once"), 12);
    for (size_t at = 0; (at = test.body.find("dev::" + name, at)) != std::string::npos; ++at) {
      test.body.replace(at, 3, "sm75");
    }
    const Words in = input_words();
    Words out(static_cast<size_t>(test.num_outputs), 0xcdcdcdcd);
    run_into(test, in, out, functions);
    EXPECT_EQ(out, test.expected(in)) << name;
  }

  static DeviceFunctionCase find_case(const std::string& name) {
    for (const DeviceFunctionCase& test : device_function_cases()) {
      if (test.name == name) return test;
    }
    ADD_FAILURE() << "no case " << name;
    return {};
  }
};

TEST_F(Sm75FunctionTest, TwoProductsAreOneTwiceAsDeep) {
  expect_same(find_case("MmaF16"), "device/ptx/sm75/products.cuh", "mma_m16n8k16_f16");
}

TEST_F(Sm75FunctionTest, Bf16IsRoundedAsByTheInstruction) {
  expect_same(find_case("PackBf16x2"), "device/ptx/sm75/bits.cuh", "pack_bf16x2");
}

TEST_F(Sm75FunctionTest, MasksHaveTheFirstBytes) {
  DeviceFunctionCase test;
  test.body = "for (int i = lane; i < 80; i += 32) out[i] = dev::mask_of_word(i % 4, i / 4 - 1);";
  test.num_outputs = 80;
  test.expected = [](const Words&) {
    Words out;
    for (int i = 0; i < 80; ++i) {
      uint32_t mask = 0;
      for (int byte = 0; byte < 4; ++byte) {
        if (i % 4 * 4 + byte < i / 4 - 1) mask |= 0xffu << (8 * byte);
      }
      out.push_back(mask);
    }
    return out;
  };
  expect_same(test, "device/ptx/sm75/bits.cuh", "mask_of_word");
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFunctionTest, ::testing::ValuesIn(device_function_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit::testing
