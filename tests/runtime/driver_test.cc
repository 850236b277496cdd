#include "runtime/driver/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/logger.h"
#include "tests/runtime/stub_driver/stub_driver.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DriverTest : public ::testing::Test {
 protected:
  DriverTest() {
    script = script_of(PAGEJIT_STUB_DRIVER);
    script->reset();
  }
  ~DriverTest() override { script->reset(); }

  static pagejit_stub::Script* script_of(const char* path) {
    Result<std::shared_ptr<const Driver>> driver = Driver::open(path);
    if (!driver) std::abort();
    return reinterpret_cast<pagejit_stub::Script* (*)()>(
        driver.value()->symbol("pagejit_stub_script"))();
  }

  static void expect_unavailable(const std::string& part) {
    Result<std::shared_ptr<const Driver>> driver = Driver::open(PAGEJIT_STUB_DRIVER);
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.status().code(), StatusCode::kDriverUnavailable);
    EXPECT_THAT(driver.status().message(), HasSubstr(part));
  }

  pagejit_stub::Script* script;
};

TEST_F(DriverTest, OpensAndResolvesEverything) {
  Result<std::shared_ptr<const Driver>> driver = Driver::open(PAGEJIT_STUB_DRIVER);
  ASSERT_TRUE(driver) << driver.status().to_string();
  EXPECT_EQ(driver.value()->version(), 12040);
  EXPECT_FALSE(driver.value()->is_emulator());
  EXPECT_NE(driver.value()->cuFuncLoad, nullptr);
  EXPECT_EQ(script->calls("cuInit"), 1u);
}

TEST_F(DriverTest, FileThatIsNotThereIsUnavailableAndNamed) {
  Result<std::shared_ptr<const Driver>> driver = Driver::open("/nowhere/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.status().code(), StatusCode::kDriverUnavailable);
  EXPECT_THAT(driver.status().message(), HasSubstr("/nowhere/libcuda.so.1"));
}

TEST_F(DriverTest, LibraryThatIsNoDriverIsUnavailable) {
  Result<std::shared_ptr<const Driver>> driver = Driver::open("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.status().message(), HasSubstr("is no CUDA driver"));
}

TEST_F(DriverTest, TooOldDriverIsUnavailableWithBothVersions) {
  script->set_driver_version(11080);
  expect_unavailable("supports CUDA 11.8, but 12.0 or later is needed");
}

TEST_F(DriverTest, TheOldestServedDriverHasNoFuncLoad) {
  script->set_driver_version(12000);
  Result<std::shared_ptr<const Driver>> driver = Driver::open(PAGEJIT_STUB_DRIVER);
  ASSERT_TRUE(driver) << driver.status().to_string();
  EXPECT_EQ(driver.value()->cuFuncLoad, nullptr);
}

TEST_F(DriverTest, MissingFunctionsAreAllNamed) {
  script->remove("cuLibraryLoadData");
  script->remove("cuMemsetD32Async");
  expect_unavailable("lacks cuLibraryLoadData, cuMemsetD32Async");
}

TEST_F(DriverTest, EveryFunctionButOneIsRequired) {
  const char* functions[] = {"cuGetErrorName",
                             "cuGetErrorString",
                             "cuInit",
                             "cuDriverGetVersion",
                             "cuDeviceGetCount",
                             "cuDeviceGet",
                             "cuDeviceGetName",
                             "cuDeviceGetAttribute",
                             "cuDeviceTotalMem",
                             "cuDevicePrimaryCtxRetain",
                             "cuDevicePrimaryCtxRelease",
                             "cuCtxGetCurrent",
                             "cuCtxSetCurrent",
                             "cuCtxPushCurrent",
                             "cuCtxPopCurrent",
                             "cuCtxGetDevice",
                             "cuCtxGetId",
                             "cuCtxSynchronize",
                             "cuLibraryLoadData",
                             "cuLibraryUnload",
                             "cuLibraryGetKernel",
                             "cuKernelGetFunction",
                             "cuKernelSetAttribute",
                             "cuKernelGetAttribute",
                             "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                             "cuLaunchKernelEx",
                             "cuMemAlloc",
                             "cuMemFree",
                             "cuMemGetInfo",
                             "cuMemcpyHtoD",
                             "cuMemcpyDtoH",
                             "cuMemcpyHtoDAsync",
                             "cuMemcpyDtoHAsync",
                             "cuMemcpyDtoDAsync",
                             "cuMemsetD8Async",
                             "cuMemsetD32Async",
                             "cuStreamCreate",
                             "cuStreamDestroy",
                             "cuStreamSynchronize",
                             "cuStreamBeginCapture",
                             "cuStreamEndCapture",
                             "cuStreamIsCapturing",
                             "cuThreadExchangeStreamCaptureMode",
                             "cuEventCreate",
                             "cuEventDestroy",
                             "cuEventRecord",
                             "cuEventSynchronize",
                             "cuEventElapsedTime",
                             "cuGraphInstantiateWithFlags",
                             "cuGraphLaunch",
                             "cuGraphExecDestroy",
                             "cuGraphDestroy"};
  for (const char* function : functions) {
    script->reset();
    script->remove(function);
    expect_unavailable(function);
  }
  script->reset();
  script->remove("cuFuncLoad");
  EXPECT_TRUE(Driver::open(PAGEJIT_STUB_DRIVER));
}

TEST_F(DriverTest, FailureOfInitIsNamed) {
  script->fail("cuInit", CUDA_ERROR_NO_DEVICE);
  expect_unavailable("cuInit failed: CUDA_ERROR_NO_DEVICE (100)");
}

TEST_F(DriverTest, FailureOfTheVersionQueryIsNamed) {
  script->fail("cuDriverGetVersion", CUDA_ERROR_STUB_LIBRARY);
  expect_unavailable("the toolkit's stub library, not a driver");
}

TEST_F(DriverTest, ResultsBecomeStatusesWithNameNumberAndText) {
  std::shared_ptr<const Driver> driver = *Driver::open(PAGEJIT_STUB_DRIVER);
  EXPECT_TRUE(driver->check(CUDA_SUCCESS, "cuLaunchKernelEx"));
  const Status status = driver->check(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernelEx");
  EXPECT_EQ(status.code(), StatusCode::kDriverError);
  EXPECT_EQ(status.message(),
            "cuLaunchKernelEx failed: CUDA_ERROR_INVALID_VALUE (1), invalid argument");
  EXPECT_EQ(driver->check(static_cast<CUresult>(1023), "cuX").message(),
            "cuX failed: unknown CUresult (1023)");
}

TEST_F(DriverTest, EmulatorIsToldByItsMarkerAndAddsItsReport) {
  Result<std::shared_ptr<const Driver>> driver = Driver::open(PAGEJIT_STUB_EMULATOR);
  ASSERT_TRUE(driver) << driver.status().to_string();
  EXPECT_TRUE(driver.value()->is_emulator());
  EXPECT_EQ(driver.value()->check(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernelEx").detail(),
            "stub report");
}

TEST_F(DriverTest, EmulatorByNameComesFromItsPath) {
  const Logger logger(LogLevel::kOff, {});
  Result<std::shared_ptr<const Driver>> driver =
      open_driver({.driver = "emulator", .emulator_path = PAGEJIT_STUB_EMULATOR}, logger);
  ASSERT_TRUE(driver) << driver.status().to_string();
  EXPECT_TRUE(driver.value()->is_emulator());

  driver = open_driver({.driver = "emulator", .emulator_path = "/nowhere/emulator.so"}, logger);
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.status().message(), HasSubstr("/nowhere/emulator.so"));
}

// A driver of this machine has no device then, and does not work.
void hide_gpus() { ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "-1", 1), 0); }

TEST_F(DriverTest, WithoutADriverEverythingTriedIsNamed) {
  hide_gpus();
  const Logger logger(LogLevel::kOff, {});
  const Status status = open_driver({}, logger).status();
  EXPECT_EQ(status.code(), StatusCode::kDriverUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("libcuda.so.1"), HasSubstr("/usr/lib/wsl/lib")));

  const Status with_emulator =
      open_driver({.driver = "", .allow_emulator = true, .emulator_path = "/nowhere/emulator.so"},
                  logger)
          .status();
  EXPECT_THAT(with_emulator.message(),
              AllOf(HasSubstr("libcuda.so.1"), HasSubstr("/nowhere/emulator.so")));
}

TEST_F(DriverTest, AllowedEmulatorReplacesAMissingDriverWithOneWarning) {
  hide_gpus();
  std::vector<std::string> warnings;
  const Logger logger(LogLevel::kWarning,
                      [&](LogLevel, std::string_view line) { warnings.emplace_back(line); });
  Result<std::shared_ptr<const Driver>> driver = open_driver(
      {.driver = "", .allow_emulator = true, .emulator_path = PAGEJIT_STUB_EMULATOR}, logger);
  ASSERT_TRUE(driver) << driver.status().to_string();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("CPU emulator"));
}

}  // namespace
}  // namespace pagejit
