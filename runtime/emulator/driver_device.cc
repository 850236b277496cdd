// The driver API on initialisation, errors and the device.
#include <cstring>

#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

constexpr int kDriverVersion = 13000;
constexpr const char* kDeviceName = "pagejit CPU emulator";

struct ErrorText {
  CUresult code;
  const char* name;
  const char* meaning;
};

constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "cuInit has not been called"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "the image was compiled for another emulator"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the resource is in a wrong state"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered (see pagejit_emulator_last_report)"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out (see pagejit_emulator_last_report)"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS",
     "misaligned address (see pagejit_emulator_last_report)"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED",
     "the launch failed (see pagejit_emulator_last_report)"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "not served by the emulator"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not begun in this stream"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorText* find_error(CUresult code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

// 0 for attributes that tell of something the emulator does not have.
int attribute_value(int attribute) {
  const DeviceLimits& limits = device_limits();
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return kMaxThreadsPerCta;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return kMaxGridX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return kMaxGridYZ;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return kSharedDefaultLimit;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return kWarpSize;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return kRegistersPerSm;
    // Clocks and bus width of an H200: they are asked for to print bandwidths, never for
    // correctness.
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1980000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 3201000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 6144;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return limits.sm_count;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return limits.l2_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return limits.threads_per_sm;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return limits.sm / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return limits.sm % 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return limits.shared_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return limits.shared_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return limits.ctas_per_sm;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return limits.sm >= 80 ? kSharedReservedPerCta : 0;
    default:
      return 0;
  }
}

CUresult check_device(const Guard& guard, CUdevice device) {
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

PAGEJIT_EMULATOR_API CUresult cuInit(unsigned flags) {
  const Guard guard(Guard::kNothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  driver_state().initialised = true;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuGetErrorName(CUresult code, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* error = find_error(code);
  *name = error != nullptr ? error->name : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PAGEJIT_EMULATOR_API CUresult cuGetErrorString(CUresult code, const char** meaning) {
  if (meaning == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* error = find_error(code);
  *meaning = error != nullptr ? error->meaning : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceGetCount(int* count) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = 1;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_device(guard, ordinal); error != CUDA_SUCCESS) return error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_device(guard, device); error != CUDA_SUCCESS) return error;
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(name, kDeviceName, static_cast<size_t>(length));
  name[length - 1] = '\0';
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_device(guard, device); error != CUDA_SUCCESS) return error;
  if (value == nullptr || attribute < 1 || attribute >= kDeviceAttributeEnd) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = attribute_value(attribute);
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_device(guard, device); error != CUDA_SUCCESS) return error;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kDeviceMemoryBytes;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (CUresult error = check_device(guard, device); error != CUDA_SUCCESS) return error;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr char kUuid[] = "pagejit-emulator";
  static_assert(sizeof(kUuid) == sizeof(uuid->bytes) + 1);
  std::memcpy(uuid->bytes, kUuid, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

}  // namespace pagejit_emulator
