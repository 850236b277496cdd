// The driver API as a stand-in for libcuda: memory and what is known of a pointer.
#include <vector>

#include "tests/runtime/emulator/driver_fixture.h"

namespace pagejit_emulator {
namespace {

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

}  // namespace
}  // namespace pagejit_emulator
