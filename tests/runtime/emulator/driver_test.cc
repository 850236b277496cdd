// The driver API as a stand-in for libcuda: objects, errors, memory, capture.
#include <gmock/gmock.h>

#include <thread>

#include "templates/device/host/emulator_abi.cuh"
#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Params {
  uint32_t* data;
  uint32_t add;
};

constexpr const char* kText = R"(
struct Params { uint32_t* data; uint32_t add; };
PAGEJIT_KERNEL(64, 2) add(const __grid_constant__ Params params) {
  const int t = dev::thread_idx();
  dev::store_global(params.data + t, dev::load_global(params.data + t) + params.add);
}
PAGEJIT_ENTRY(add, Params)
PAGEJIT_KERNEL(128, 1) other(const __grid_constant__ Params params) {
  dev::store_global(params.data + 1024, 1u);
}
PAGEJIT_ENTRY(other, Params)
)";

class DriverTest : public EmulatorTest {
 protected:
  CUstream make_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(symbol<decltype(cuStreamCreate)>("cuStreamCreate")(&stream, 1), CUDA_SUCCESS);
    return stream;
  }
  void destroy(CUstream stream) {
    EXPECT_EQ(symbol<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2")(stream), CUDA_SUCCESS);
  }
  CUresult begin_capture(CUstream stream,
                         CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return symbol<decltype(cuStreamBeginCapture_v2)>("cuStreamBeginCapture_v2")(stream, mode);
  }
  CUresult end_capture(CUstream stream, CUgraph* graph) {
    return symbol<decltype(cuStreamEndCapture)>("cuStreamEndCapture")(stream, graph);
  }
  int attribute(int which) {
    int value = -1;
    EXPECT_EQ(symbol<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute")(&value, which, 0),
              CUDA_SUCCESS);
    return value;
  }
};

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

TEST_F(DriverTest, ImagesAreCheckedBeforeUse) {
  const auto load = symbol<decltype(cuLibraryLoadData)>("cuLibraryLoadData");
  CUlibrary library = nullptr;
  const std::string text(256, 'x');
  EXPECT_EQ(load(&library, text.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_THAT(report(), HasSubstr("no shared object"));

  std::string source = host_source("");
  const std::string abi = "kEmulatorAbi = " + std::to_string(kEmulatorAbi);
  ASSERT_NE(source.find(abi), std::string::npos);
  source.replace(source.find(abi), abi.size(), "kEmulatorAbi = 999");
  const std::string other_abi = compile_source(source, pagejit::HostBuild::kPlain);
  EXPECT_EQ(load(&library, other_abi.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_THAT(report(), HasSubstr("emulator ABI 999"));

  const std::string no_image =
      compile_source("int f() { return 1; }\n", pagejit::HostBuild::kPlain);
  EXPECT_EQ(load(&library, no_image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_THAT(report(), HasSubstr("lacks pagejit_emulator_image"));

  if (std::string(PAGEJIT_TEST_SANITIZE).find("address") == std::string::npos) {
    const std::string asan = compile_image(kText, pagejit::HostBuild::kAddressSanitizer);
    EXPECT_EQ(load(&library, asan.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_THAT(report(), HasSubstr("__asan"));
  }
}

TEST_F(DriverTest, KernelsAreFoundByNameAndKnowTheirBounds) {
  const CUfunction add = kernel(kText, "add");
  const auto get = symbol<decltype(cuFuncGetAttribute)>("cuFuncGetAttribute");
  int value = 0;
  EXPECT_EQ(get(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add), CUDA_SUCCESS);
  EXPECT_EQ(value, 64);
  EXPECT_EQ(get(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel(kText, "other")),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 128);
  const std::string image = compile_image(kText, pagejit::HostBuild::kPlain);
  CUlibrary library = nullptr;
  ASSERT_EQ(symbol<decltype(cuLibraryLoadData)>("cuLibraryLoadData")(
                &library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  CUkernel none = nullptr;
  EXPECT_EQ(symbol<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel")(&none, library, "absent"),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(symbol<decltype(cuLibraryUnload)>("cuLibraryUnload")(library), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuLibraryUnload)>("cuLibraryUnload")(library),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverTest, SharedMemoryMustBeAskedForAndOccupancyFollowsIt) {
  const CUfunction add = kernel(kText, "add");
  uint32_t* data = upload(std::vector<uint32_t>(64));
  const Params params = {data, 1};
  const LaunchShape shape = {.num_threads = 64, .shared_bytes = 100 * 1024};
  EXPECT_EQ(launch(add, shape, params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(report(), HasSubstr("102400 bytes of dynamic shared memory"));
  const auto occupancy = symbol<decltype(cuOccupancyMaxActiveBlocksPerMultiprocessor)>(
      "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  int ctas = -1;
  EXPECT_EQ(occupancy(&ctas, add, 64, shape.shared_bytes), CUDA_SUCCESS);
  EXPECT_EQ(ctas, 0);
  const auto set = symbol<decltype(cuKernelSetAttribute)>("cuKernelSetAttribute");
  EXPECT_EQ(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 * 1024, add, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024, add, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(add, shape, params), CUDA_SUCCESS) << report();
  EXPECT_EQ(occupancy(&ctas, add, 64, shape.shared_bytes), CUDA_SUCCESS);
  EXPECT_EQ(ctas, 2);  // 228 KiB hold two of 101 KiB
  EXPECT_EQ(occupancy(&ctas, add, 64, 0), CUDA_SUCCESS);
  EXPECT_EQ(ctas, 32);  // CTAs per SM
}

TEST_F(DriverTest, IllegalLaunchesAreRefused) {
  const CUfunction add = kernel(kText, "add");
  const Params params = {upload(std::vector<uint32_t>(64)), 1};
  EXPECT_EQ(launch(add, {.grid_x = 0, .num_threads = 64}, params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(add, {.num_threads = 64, .grid_z = 70000}, params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(add, {.num_threads = 48}, params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(add, {.num_threads = 96}, params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nullptr, {.num_threads = 64}, params), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(launch_raw(add, {.num_threads = 64}, nullptr), CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  const LaunchShape bad_stream = {.num_threads = 64, .stream = reinterpret_cast<CUstream>(&local)};
  EXPECT_EQ(launch(add, bad_stream, params), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverTest, MemoryIsCopiedSetAndGuarded) {
  const auto set8 = symbol<decltype(cuMemsetD8_v2)>("cuMemsetD8_v2");
  const auto set32 = symbol<decltype(cuMemsetD32_v2)>("cuMemsetD32_v2");
  auto* data = static_cast<uint32_t*>(allocate(400));
  EXPECT_EQ(address(data) % 256, 0u);
  EXPECT_EQ(download(data, 100), std::vector<uint32_t>(100, 0xffffffffu))
      << "fresh memory is poisoned";
  EXPECT_EQ(set32(address(data), 7, 100), CUDA_SUCCESS);
  EXPECT_EQ(set8(address(data) + 4, 1, 4), CUDA_SUCCESS);
  EXPECT_EQ(download(data, 3), (std::vector<uint32_t>{7, 0x01010101, 7}));
  EXPECT_EQ(set32(address(data), 7, 101), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(set32(address(data) + 2, 7, 1), CUDA_ERROR_INVALID_VALUE);
  uint32_t host[101];
  EXPECT_EQ(symbol<decltype(cuMemcpyDtoH_v2)>("cuMemcpyDtoH_v2")(host, address(data), 404),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(symbol<decltype(cuMemcpyHtoD_v2)>("cuMemcpyHtoD_v2")(address(host), host, 4),
            CUDA_ERROR_INVALID_VALUE);
  auto* copy = static_cast<uint32_t*>(allocate(400));
  EXPECT_EQ(symbol<decltype(cuMemcpyDtoD_v2)>("cuMemcpyDtoD_v2")(address(copy), address(data), 400),
            CUDA_SUCCESS);
  EXPECT_EQ(download(copy, 100), download(data, 100));
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(address(data) + 4),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, LargeAllocationsAreReservedNotCommitted) {
  size_t free_before = 0;
  size_t total = 0;
  const auto info = symbol<decltype(cuMemGetInfo_v2)>("cuMemGetInfo_v2");
  EXPECT_EQ(info(&free_before, &total), CUDA_SUCCESS);
  constexpr size_t kBytes = size_t{40} << 30;
  auto* data = static_cast<unsigned char*>(allocate(kBytes));
  size_t free_after = 0;
  EXPECT_EQ(info(&free_after, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_before - free_after, kBytes);
  EXPECT_EQ(symbol<decltype(cuMemsetD8_v2)>("cuMemsetD8_v2")(address(data) + kBytes - 8, 3, 8),
            CUDA_SUCCESS);
  EXPECT_EQ(download(data + kBytes - 9, 9)[0], 0);
  EXPECT_EQ(download(data + kBytes - 9, 9)[8], 3);
  CUdeviceptr more = 0;
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&more, kBytes),
            CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(DriverTest, PointersTellWhatTheyAre) {
  const auto get = symbol<decltype(cuPointerGetAttribute)>("cuPointerGetAttribute");
  void* data = allocate(512);
  unsigned type = 0;
  CUdeviceptr start = 0;
  size_t bytes = 0;
  EXPECT_EQ(get(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(data) + 100), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(get(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address(data) + 100), CUDA_SUCCESS);
  EXPECT_EQ(get(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address(data) + 100), CUDA_SUCCESS);
  EXPECT_EQ(start, address(data));
  EXPECT_EQ(bytes, 512u);
  EXPECT_EQ(get(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(&type)), CUDA_ERROR_INVALID_VALUE);
  void* host = nullptr;
  ASSERT_EQ(symbol<decltype(cuMemAllocHost_v2)>("cuMemAllocHost_v2")(&host, 64), CUDA_SUCCESS);
  EXPECT_EQ(get(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(host)), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_EQ(symbol<decltype(cuMemFreeHost)>("cuMemFreeHost")(host), CUDA_SUCCESS);
}

TEST_F(DriverTest, GraphReplaysLaunchesFillsAndCopiesInOrderWithTheParametersOfTheCapture) {
  const CUfunction add = kernel(kText, "add");
  auto* data = upload(std::vector<uint32_t>(64, 1000));
  auto* copy = upload(std::vector<uint32_t>(64, 1000));
  CUstream stream = make_stream();
  ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(symbol<decltype(cuStreamIsCapturing)>("cuStreamIsCapturing")(stream, &status),
            CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(symbol<decltype(cuMemsetD32Async)>("cuMemsetD32Async")(address(data), 5, 64, stream),
            CUDA_SUCCESS);
  Params params = {data, 10};
  void* pointers[] = {&params};
  const LaunchShape shape = {.num_threads = 64, .stream = stream};
  EXPECT_EQ(launch_raw(add, shape, pointers), CUDA_SUCCESS);
  params.add = 100;  // the capture has its own copy
  EXPECT_EQ(symbol<decltype(cuMemcpyDtoDAsync_v2)>("cuMemcpyDtoDAsync_v2")(
                address(copy), address(data), 256, stream),
            CUDA_SUCCESS);
  params.add = 1;
  EXPECT_EQ(launch_raw(add, shape, pointers), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(end_capture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(counters().launches, 0u);

  size_t nodes = 0;
  EXPECT_EQ(symbol<decltype(cuGraphGetNodes)>("cuGraphGetNodes")(graph, nullptr, &nodes),
            CUDA_SUCCESS);
  EXPECT_EQ(nodes, 4u);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(
      symbol<decltype(cuGraphInstantiateWithFlags)>("cuGraphInstantiateWithFlags")(&exec, graph, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuGraphDestroy)>("cuGraphDestroy")(graph), CUDA_SUCCESS);
  EXPECT_EQ(download(data, 1)[0], 1000u) << "nothing ran yet";
  const auto replay = symbol<decltype(cuGraphLaunch)>("cuGraphLaunch");
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(replay(exec, stream), CUDA_SUCCESS) << report();
    EXPECT_EQ(download(data, 64), std::vector<uint32_t>(64, 16));
    EXPECT_EQ(download(copy, 64), std::vector<uint32_t>(64, 15));
    EXPECT_EQ(counters().launches, 2u * static_cast<unsigned>(i));
  }
  EXPECT_EQ(symbol<decltype(cuGraphExecDestroy)>("cuGraphExecDestroy")(exec), CUDA_SUCCESS);
  EXPECT_EQ(replay(exec, stream), CUDA_ERROR_INVALID_HANDLE);
  destroy(stream);
}

TEST_F(DriverTest, FailedLaunchInAGraphFailsTheReplay) {
  const CUfunction other = kernel(kText, "other");
  CUstream stream = make_stream();
  ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
  const Params params = {nullptr, 0};
  EXPECT_EQ(launch(other, {.num_threads = 128, .stream = stream}, params), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(end_capture(stream, &graph), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(
      symbol<decltype(cuGraphInstantiateWithFlags)>("cuGraphInstantiateWithFlags")(&exec, graph, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuGraphLaunch)>("cuGraphLaunch")(exec, stream),
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(report(), StartsWith("other, CTA (0,0,0), thread 0: store_global"));
  destroy(stream);
}

TEST_F(DriverTest, AllocationAndWaitsSpoilACapture) {
  CUgraph graph = nullptr;
  CUdeviceptr p = 0;
  const auto alloc = symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2");
  for (int which = 0; which < 3; ++which) {
    CUstream stream = make_stream();
    ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
    const CUresult result =
        which == 0   ? alloc(&p, 16)
        : which == 1 ? symbol<decltype(cuStreamSynchronize)>("cuStreamSynchronize")(stream)
                     : symbol<decltype(cuCtxSynchronize)>("cuCtxSynchronize")();
    EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << which;
    EXPECT_EQ(end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    destroy(stream);
  }
}

TEST_F(DriverTest, RelaxedCaptureAllowsAllocation) {
  CUgraph graph = nullptr;
  CUdeviceptr p = 0;
  CUstream stream = make_stream();
  ASSERT_EQ(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, 16), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p), CUDA_SUCCESS);
  EXPECT_EQ(end_capture(stream, &graph), CUDA_SUCCESS);
  // Relaxed by the thread instead of by the capture.
  ASSERT_EQ(begin_capture(stream), CUDA_SUCCESS);
  const auto exchange =
      symbol<decltype(cuThreadExchangeStreamCaptureMode)>("cuThreadExchangeStreamCaptureMode");
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(exchange(&mode), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&p, 16), CUDA_SUCCESS);
  EXPECT_EQ(exchange(&mode), CUDA_SUCCESS);
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(symbol<decltype(cuMemFree_v2)>("cuMemFree_v2")(p), CUDA_SUCCESS);
  destroy(stream);
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

TEST_F(DriverTest, LaunchesFromSeveralThreadsExcludeEachOther) {
  const CUfunction add = kernel(kText, "add");
  const Params params = {upload(std::vector<uint32_t>(64)), 1};
  CUcontext context = nullptr;
  symbol<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent")(&context);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      symbol<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
      for (int k = 0; k < 50; ++k) {
        EXPECT_EQ(launch(add, {.num_threads = 64}, params), CUDA_SUCCESS) << report();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(download(params.data, 64), std::vector<uint32_t>(64, 200));
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
