// The driver API on memory. Device addresses are host addresses of allocations that the emulator
// knows.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

CUresult copy(void* to, const void* from, size_t bytes) {
  std::memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

// `device`: the operand that must be known. Synchronous calls use the legacy stream and may not
// meet a capture.
CUresult enqueue_copy(void* to, const void* from, size_t bytes, CUstream stream) {
  return enqueue(stream, [=] { return copy(to, from, bytes); });
}

template <class T>
CUresult fill(CUdeviceptr address, T value, size_t count, CUstream stream) {
  if (address % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) return CUDA_SUCCESS;
  if (count > kDeviceMemoryBytes || !is_device_range(address, count * sizeof(T))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return enqueue(stream, [=] {
    std::fill_n(static_cast<T*>(pointer(address)), count, value);
    return CUDA_SUCCESS;
  });
}

// The checks that all copies share; `bytes` of 0 are no copy at all.
CUresult check_copy(const Guard& guard, const void* host, bool needs_host) {
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return needs_host && host == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

constexpr CUstream kLegacyStream = nullptr;

CUresult host_to_device(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!is_device_range(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue_copy(pointer(to), from, bytes, stream);
}

CUresult device_to_host(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!is_device_range(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue_copy(to, pointer(from), bytes, stream);
}

CUresult device_to_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!is_device_range(to, bytes) || !is_device_range(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue_copy(pointer(to), pointer(from), bytes, stream);
}

}  // namespace

bool is_device_range(CUdeviceptr address, size_t bytes) {
  return driver_state().memory.find(static_cast<uintptr_t>(address), bytes) != nullptr;
}

PAGEJIT_EMULATOR_API CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (CUresult error = forbid_during_capture(); error != CUDA_SUCCESS) return error;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = driver_state().memory.allocate(bytes, /*is_host=*/false);
  return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

PAGEJIT_EMULATOR_API CUresult cuMemFree_v2(CUdeviceptr address) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (CUresult error = forbid_during_capture(); error != CUDA_SUCCESS) return error;
  if (address == 0) return CUDA_SUCCESS;
  return driver_state().memory.release(static_cast<uintptr_t>(address), false)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

PAGEJIT_EMULATOR_API CUresult cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (CUresult error = forbid_during_capture(); error != CUDA_SUCCESS) return error;
  if (p == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *p = pointer(driver_state().memory.allocate(bytes, /*is_host=*/true));
  return *p != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

PAGEJIT_EMULATOR_API CUresult cuMemAllocHost_v2(void** p, size_t bytes) {
  return cuMemHostAlloc(p, bytes, 0);
}

PAGEJIT_EMULATOR_API CUresult cuMemFreeHost(void* p) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return driver_state().memory.release(reinterpret_cast<uintptr_t>(p), true)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

PAGEJIT_EMULATOR_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *total = kDeviceMemoryBytes;
  *free = kDeviceMemoryBytes - driver_state().memory.device_bytes();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                                   CUstream stream) {
  const Guard guard(Guard::kContext);
  if (CUresult error = check_copy(guard, from, bytes > 0); error != CUDA_SUCCESS) return error;
  return host_to_device(to, from, bytes, stream);
}

PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                                   CUstream stream) {
  const Guard guard(Guard::kContext);
  if (CUresult error = check_copy(guard, to, bytes > 0); error != CUDA_SUCCESS) return error;
  return device_to_host(to, from, bytes, stream);
}

PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                                   CUstream stream) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return device_to_device(to, from, bytes, stream);
}

PAGEJIT_EMULATOR_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, kLegacyStream);
}

PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, kLegacyStream);
}

PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, kLegacyStream);
}

PAGEJIT_EMULATOR_API CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value,
                                              size_t count, CUstream stream) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return fill(address, value, count, stream);
}

PAGEJIT_EMULATOR_API CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count,
                                               CUstream stream) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return fill(address, value, count, stream);
}

PAGEJIT_EMULATOR_API CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value,
                                            size_t count) {
  return cuMemsetD8Async(address, value, count, kLegacyStream);
}

PAGEJIT_EMULATOR_API CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count) {
  return cuMemsetD32Async(address, value, count, kLegacyStream);
}

PAGEJIT_EMULATOR_API CUresult cuPointerGetAttribute(void* data, int attribute,
                                                    CUdeviceptr address) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* allocation = driver_state().memory.find(static_cast<uintptr_t>(address), 1);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = current_context();
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) =
          allocation->is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!allocation->is_host) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(data) = pointer(address);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = address;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = 0;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = allocation->begin;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = allocation->bytes;
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

}  // namespace pagejit_emulator
