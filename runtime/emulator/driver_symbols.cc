// cuGetProcAddress: names to functions.
#include <cstring>
#include <string_view>

#include "runtime/emulator/driver_api.h"
#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

constexpr int kVersionOfCtxCreate4 = 12050;  // the only _v4 served

struct Symbol {
  std::string_view name;  // as exported
  void* function;
};

// NOLINTBEGIN(bugprone-macro-parentheses): the name of a function takes none
#define PAGEJIT_SYMBOL(function) \
  { #function, reinterpret_cast < void*>(&function) }
// NOLINTEND(bugprone-macro-parentheses)

const Symbol kSymbols[] = {
    PAGEJIT_SYMBOL(cuCtxCreate_v2),
    PAGEJIT_SYMBOL(cuCtxCreate_v4),
    PAGEJIT_SYMBOL(cuCtxDestroy_v2),
    PAGEJIT_SYMBOL(cuCtxGetCurrent),
    PAGEJIT_SYMBOL(cuCtxGetDevice),
    PAGEJIT_SYMBOL(cuCtxGetId),
    PAGEJIT_SYMBOL(cuCtxPopCurrent_v2),
    PAGEJIT_SYMBOL(cuCtxPushCurrent_v2),
    PAGEJIT_SYMBOL(cuCtxSetCurrent),
    PAGEJIT_SYMBOL(cuCtxSynchronize),
    PAGEJIT_SYMBOL(cuDeviceGet),
    PAGEJIT_SYMBOL(cuDeviceGetAttribute),
    PAGEJIT_SYMBOL(cuDeviceGetCount),
    PAGEJIT_SYMBOL(cuDeviceGetName),
    PAGEJIT_SYMBOL(cuDeviceGetUuid),
    PAGEJIT_SYMBOL(cuDeviceGetUuid_v2),
    PAGEJIT_SYMBOL(cuDevicePrimaryCtxGetState),
    PAGEJIT_SYMBOL(cuDevicePrimaryCtxRelease_v2),
    PAGEJIT_SYMBOL(cuDevicePrimaryCtxRetain),
    PAGEJIT_SYMBOL(cuDevicePrimaryCtxSetFlags_v2),
    PAGEJIT_SYMBOL(cuDeviceTotalMem_v2),
    PAGEJIT_SYMBOL(cuDriverGetVersion),
    PAGEJIT_SYMBOL(cuEventCreate),
    PAGEJIT_SYMBOL(cuEventDestroy_v2),
    PAGEJIT_SYMBOL(cuEventElapsedTime),
    PAGEJIT_SYMBOL(cuEventElapsedTime_v2),
    PAGEJIT_SYMBOL(cuEventQuery),
    PAGEJIT_SYMBOL(cuEventRecord),
    PAGEJIT_SYMBOL(cuEventRecordWithFlags),
    PAGEJIT_SYMBOL(cuEventSynchronize),
    PAGEJIT_SYMBOL(cuFuncGetAttribute),
    PAGEJIT_SYMBOL(cuFuncGetName),
    PAGEJIT_SYMBOL(cuFuncLoad),
    PAGEJIT_SYMBOL(cuFuncSetAttribute),
    PAGEJIT_SYMBOL(cuGetErrorName),
    PAGEJIT_SYMBOL(cuGetErrorString),
    PAGEJIT_SYMBOL(cuGetProcAddress),
    PAGEJIT_SYMBOL(cuGetProcAddress_v2),
    PAGEJIT_SYMBOL(cuGraphDestroy),
    PAGEJIT_SYMBOL(cuGraphExecDestroy),
    PAGEJIT_SYMBOL(cuGraphGetNodes),
    // Since CUDA 12 the plain name means the function with flags.
    {"cuGraphInstantiate", reinterpret_cast<void*>(&cuGraphInstantiateWithFlags)},
    PAGEJIT_SYMBOL(cuGraphInstantiateWithFlags),
    PAGEJIT_SYMBOL(cuGraphLaunch),
    PAGEJIT_SYMBOL(cuInit),
    PAGEJIT_SYMBOL(cuKernelGetAttribute),
    PAGEJIT_SYMBOL(cuKernelGetFunction),
    PAGEJIT_SYMBOL(cuKernelGetName),
    PAGEJIT_SYMBOL(cuKernelSetAttribute),
    PAGEJIT_SYMBOL(cuLaunchKernel),
    PAGEJIT_SYMBOL(cuLaunchKernelEx),
    PAGEJIT_SYMBOL(cuLibraryGetKernel),
    PAGEJIT_SYMBOL(cuLibraryLoadData),
    PAGEJIT_SYMBOL(cuLibraryUnload),
    PAGEJIT_SYMBOL(cuMemAlloc_v2),
    PAGEJIT_SYMBOL(cuMemAllocHost_v2),
    PAGEJIT_SYMBOL(cuMemFree_v2),
    PAGEJIT_SYMBOL(cuMemFreeHost),
    PAGEJIT_SYMBOL(cuMemGetInfo_v2),
    PAGEJIT_SYMBOL(cuMemHostAlloc),
    PAGEJIT_SYMBOL(cuMemcpyDtoD_v2),
    PAGEJIT_SYMBOL(cuMemcpyDtoDAsync_v2),
    PAGEJIT_SYMBOL(cuMemcpyDtoH_v2),
    PAGEJIT_SYMBOL(cuMemcpyDtoHAsync_v2),
    PAGEJIT_SYMBOL(cuMemcpyHtoD_v2),
    PAGEJIT_SYMBOL(cuMemcpyHtoDAsync_v2),
    PAGEJIT_SYMBOL(cuMemsetD32_v2),
    PAGEJIT_SYMBOL(cuMemsetD32Async),
    PAGEJIT_SYMBOL(cuMemsetD8_v2),
    PAGEJIT_SYMBOL(cuMemsetD8Async),
    PAGEJIT_SYMBOL(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    PAGEJIT_SYMBOL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    PAGEJIT_SYMBOL(cuPointerGetAttribute),
    PAGEJIT_SYMBOL(cuStreamBeginCapture_v2),
    PAGEJIT_SYMBOL(cuStreamCreate),
    PAGEJIT_SYMBOL(cuStreamCreateWithPriority),
    PAGEJIT_SYMBOL(cuStreamDestroy_v2),
    PAGEJIT_SYMBOL(cuStreamEndCapture),
    PAGEJIT_SYMBOL(cuStreamGetCtx),
    PAGEJIT_SYMBOL(cuStreamIsCapturing),
    PAGEJIT_SYMBOL(cuStreamQuery),
    PAGEJIT_SYMBOL(cuStreamSynchronize),
    PAGEJIT_SYMBOL(cuStreamWaitEvent),
    PAGEJIT_SYMBOL(cuThreadExchangeStreamCaptureMode),
};

#undef PAGEJIT_SYMBOL

// Callers give the plain name and get its newest version that their CUDA version knows; a full name
// is found too.
void* find_symbol(std::string_view name, int version) {
  void* newest = nullptr;
  std::string_view newest_suffix;
  for (const Symbol& symbol : kSymbols) {
    if (!symbol.name.starts_with(name)) continue;
    const std::string_view suffix = symbol.name.substr(name.size());
    const bool is_version = suffix.size() == 3 && suffix.starts_with("_v");
    if (!suffix.empty() && !is_version) continue;
    if (suffix == "_v4" && version < kVersionOfCtxCreate4) continue;
    if (newest == nullptr || suffix > newest_suffix) {
      newest = symbol.function;
      newest_suffix = suffix;
    }
  }
  return newest;
}

}  // namespace

PAGEJIT_EMULATOR_API CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                                  uint64_t,
                                                  CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = find_symbol(name, version);
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

PAGEJIT_EMULATOR_API CUresult cuGetProcAddress(const char* name, void** function, int version,
                                               uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // namespace pagejit_emulator
