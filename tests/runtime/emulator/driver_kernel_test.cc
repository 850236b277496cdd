// The driver API as a stand-in for libcuda: images, the kernels in them, and their launches.
#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "templates/device/host/emulator_abi.cuh"
#include "tests/runtime/emulator/driver_fixture.h"

namespace pagejit_emulator {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace pagejit_emulator
