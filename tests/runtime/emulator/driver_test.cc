// The driver API as a stand-in for libcuda: functions by name, devices, contexts, events, errors.
#include <gmock/gmock.h>

#include <initializer_list>
#include <thread>
#include <utility>

#include "tests/runtime/emulator/driver_fixture.h"

namespace pagejit_emulator {
namespace {

using ::testing::HasSubstr;

TEST_F(DriverTest, ProcAddressGivesTheNewestVersionOfEveryName) {
  const auto get = symbol<decltype(cuGetProcAddress_v2)>("cuGetProcAddress_v2");
  for (const auto& [plain, exported] : std::initializer_list<std::pair<const char*, const char*>>{
           {"cuMemAlloc", "cuMemAlloc_v2"},
           {"cuCtxCreate", "cuCtxCreate_v4"},
           {"cuGraphInstantiate", "cuGraphInstantiateWithFlags"},
           {"cuStreamBeginCapture", "cuStreamBeginCapture_v2"},
           {"cuLaunchKernel", "cuLaunchKernel"},
           {"cuLaunchKernelEx", "cuLaunchKernelEx"},
           {"cuMemFree_v2", "cuMemFree_v2"}}) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    EXPECT_EQ(get(plain, &function, 13000, 0, &status), CUDA_SUCCESS) << plain;
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_EQ(function, reinterpret_cast<void*>(symbol<void()>(exported))) << plain;
  }
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(get("cuTensorMapEncodeTiled", &function, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
}

TEST_F(DriverTest, ForeignDriverInTheProcessIsNotCalled) {
  // The emulator serves this by calling its own cuMemHostAlloc, and gives out the addresses of its
  // own functions.
  void* p = nullptr;
  ASSERT_EQ(symbol<decltype(cuMemAllocHost_v2)>("cuMemAllocHost_v2")(&p, 64), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemFreeHost)>("cuMemFreeHost")(p), CUDA_SUCCESS);
  void* function = nullptr;
  EXPECT_EQ(symbol<decltype(cuGetProcAddress_v2)>("cuGetProcAddress_v2")(
                "cuMemHostAlloc", &function, 13000, 0, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(symbol<void()>("cuMemHostAlloc")));
}

TEST_F(DriverTest, DeviceClaimsTheConfiguredComputeCapabilityWithItsLimits) {
  struct Case {
    int sm;
    int shared_optin;
    int sm_count;
  };
  for (const Case& c : {Case{90, 227 * 1024, 132}, Case{80, 163 * 1024, 108},
                        Case{86, 99 * 1024, 72}, Case{120, 99 * 1024, 170}}) {
    PagejitEmulatorOptions values = options();
    values.sm = c.sm;
    configure(values);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), c.sm / 10);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), c.sm % 10);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), c.shared_optin);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), c.sm_count);
  }
  char name[64];
  EXPECT_EQ(symbol<decltype(cuDeviceGetName)>("cuDeviceGetName")(name, 64, 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "pagejit CPU emulator");
  int value = 0;
  const auto get = symbol<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  EXPECT_EQ(get(&value, 5000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get(&value, 75, 1), CUDA_ERROR_INVALID_DEVICE);
  PagejitEmulatorOptions values = options();
  values.sm = 42;
  EXPECT_NE(symbol<decltype(pagejit_emulator_configure)>("pagejit_emulator_configure")(&values), 0);
  EXPECT_EQ(options().sm, 120);
}

TEST_F(DriverTest, CallsNeedACurrentContext) {
  const auto set_current = symbol<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent");
  CUcontext context = nullptr;
  symbol<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent")(&context);
  ASSERT_EQ(set_current(nullptr), CUDA_SUCCESS);
  CUdeviceptr p = 0;
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(set_current(context), CUDA_SUCCESS);
  std::thread([&] {
    CUcontext there = context;
    symbol<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent")(&there);
    EXPECT_EQ(there, nullptr) << "the current context belongs to a thread";
  }).join();
}

TEST_F(DriverTest, DestroyedContextsAreRefused) {
  CUcontext context = nullptr;
  const auto create = symbol<decltype(cuCtxCreate_v4)>("cuCtxCreate_v4");
  const auto get_id = symbol<decltype(cuCtxGetId)>("cuCtxGetId");
  ASSERT_EQ(create(&context, nullptr, 0, 0), CUDA_SUCCESS);
  unsigned long long id = 0;
  EXPECT_EQ(get_id(context, &id), CUDA_SUCCESS);
  CUcontext popped = nullptr;
  EXPECT_EQ(symbol<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped), CUDA_SUCCESS);
  EXPECT_EQ(popped, context);
  EXPECT_EQ(symbol<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2")(context), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context),
            CUDA_ERROR_INVALID_CONTEXT);
  unsigned long long primary_id = 0;
  EXPECT_EQ(get_id(nullptr, &primary_id), CUDA_SUCCESS);
  EXPECT_NE(primary_id, id);
}

TEST_F(DriverTest, EventsMeasureTimeInOrder) {
  const auto create = symbol<decltype(cuEventCreate)>("cuEventCreate");
  const auto record = symbol<decltype(cuEventRecord)>("cuEventRecord");
  CUevent start = nullptr;
  CUevent end = nullptr;
  ASSERT_EQ(create(&start, 0), CUDA_SUCCESS);
  ASSERT_EQ(create(&end, 0), CUDA_SUCCESS);
  float ms = -1;
  const auto elapsed = symbol<decltype(cuEventElapsedTime)>("cuEventElapsedTime");
  EXPECT_EQ(elapsed(&ms, start, end), CUDA_ERROR_INVALID_HANDLE) << "not recorded yet";
  EXPECT_EQ(record(start, nullptr), CUDA_SUCCESS);
  const Params params = {upload(std::vector<uint32_t>(64)), 1};
  EXPECT_EQ(launch(kernel(kText, "add"), {.num_threads = 64}, params), CUDA_SUCCESS);
  EXPECT_EQ(record(end, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuEventSynchronize)>("cuEventSynchronize")(end), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuEventQuery)>("cuEventQuery")(end), CUDA_SUCCESS);
  EXPECT_EQ(elapsed(&ms, start, end), CUDA_SUCCESS);
  EXPECT_GT(ms, 0);
  EXPECT_EQ(symbol<decltype(cuEventDestroy_v2)>("cuEventDestroy_v2")(start), CUDA_SUCCESS);
  EXPECT_EQ(record(start, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(symbol<decltype(cuEventDestroy_v2)>("cuEventDestroy_v2")(end), CUDA_SUCCESS);
}

TEST_F(DriverTest, ErrorsHaveNamesAndTexts) {
  const char* text = nullptr;
  EXPECT_EQ(symbol<decltype(cuGetErrorName)>("cuGetErrorName")(CUDA_ERROR_LAUNCH_FAILED, &text),
            CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_EQ(symbol<decltype(cuGetErrorString)>("cuGetErrorString")(CUDA_ERROR_LAUNCH_FAILED, &text),
            CUDA_SUCCESS);
  EXPECT_THAT(text, HasSubstr("pagejit_emulator_last_report"));
  EXPECT_EQ(symbol<decltype(cuGetErrorName)>("cuGetErrorName")(static_cast<CUresult>(12345), &text),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace pagejit_emulator
