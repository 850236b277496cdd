// Driver: the CUDA driver API as a table of typed functions, resolved at run time; nothing links
// libcuda. The CPU emulator and the tests' stub are other libraries with the same functions. The
// only header that includes cuda.h. Not a wrapper: callers use the functions as NVIDIA documents
// them and turn results into Status by check(). Thread-safety: immutable once opened; all functions
// may be called from any thread.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pagejit/status.h"

namespace pagejit {

// CUmemcpyAttributes and cuMemcpyBatchAsync as of CUDA 12.8, which older cuda.h do not have and
// newer ones call by another name.
struct MemcpyBatchAttributes {
  static constexpr int kStreamOrder = 1;  // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
  int source_access_order = 0;
  int hints[4] = {};  // where source and target are; for managed memory only
  unsigned flags = 0;
};

// Fields bear the names of the functions (cuda.h's macros rename both alike). Those marked optional
// may be null.
struct DriverFunctions {
  decltype(&::cuGetErrorName) cuGetErrorName = nullptr;
  decltype(&::cuGetErrorString) cuGetErrorString = nullptr;

  decltype(&::cuInit) cuInit = nullptr;
  decltype(&::cuDriverGetVersion) cuDriverGetVersion = nullptr;
  decltype(&::cuDeviceGetCount) cuDeviceGetCount = nullptr;
  decltype(&::cuDeviceGet) cuDeviceGet = nullptr;
  decltype(&::cuDeviceGetName) cuDeviceGetName = nullptr;
  decltype(&::cuDeviceGetAttribute) cuDeviceGetAttribute = nullptr;
  decltype(&::cuDeviceTotalMem) cuDeviceTotalMem = nullptr;

  decltype(&::cuDevicePrimaryCtxRetain) cuDevicePrimaryCtxRetain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease) cuDevicePrimaryCtxRelease = nullptr;
  decltype(&::cuCtxGetCurrent) cuCtxGetCurrent = nullptr;
  decltype(&::cuCtxSetCurrent) cuCtxSetCurrent = nullptr;
  decltype(&::cuCtxPushCurrent) cuCtxPushCurrent = nullptr;
  decltype(&::cuCtxPopCurrent) cuCtxPopCurrent = nullptr;
  CUresult(CUDAAPI* cuCtxGetDevice)(CUdevice*) = nullptr;
  decltype(&::cuCtxGetId) cuCtxGetId = nullptr;
  CUresult(CUDAAPI* cuCtxSynchronize)() = nullptr;

  decltype(&::cuLibraryLoadData) cuLibraryLoadData = nullptr;
  decltype(&::cuLibraryUnload) cuLibraryUnload = nullptr;
  decltype(&::cuLibraryGetKernel) cuLibraryGetKernel = nullptr;
  decltype(&::cuKernelGetFunction) cuKernelGetFunction = nullptr;
  decltype(&::cuKernelSetAttribute) cuKernelSetAttribute = nullptr;
  decltype(&::cuKernelGetAttribute) cuKernelGetAttribute = nullptr;
  // Optional (12.4): loads a function's code now, so that the first launch may be captured.
  CUresult(CUDAAPI* cuFuncLoad)(CUfunction) = nullptr;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor)
      cuOccupancyMaxActiveBlocksPerMultiprocessor = nullptr;
  decltype(&::cuLaunchKernelEx) cuLaunchKernelEx = nullptr;

  decltype(&::cuMemAlloc) cuMemAlloc = nullptr;
  decltype(&::cuMemFree) cuMemFree = nullptr;
  decltype(&::cuMemGetInfo) cuMemGetInfo = nullptr;
  decltype(&::cuMemcpyHtoD) cuMemcpyHtoD = nullptr;
  decltype(&::cuMemcpyDtoH) cuMemcpyDtoH = nullptr;
  decltype(&::cuMemcpyHtoDAsync) cuMemcpyHtoDAsync = nullptr;
  decltype(&::cuMemcpyDtoHAsync) cuMemcpyDtoHAsync = nullptr;
  decltype(&::cuMemcpyDtoDAsync) cuMemcpyDtoDAsync = nullptr;
  // Optional (12.8): to, from, bytes, their count, attributes, the first copy of each, their count,
  // the copy that failed, the stream.
  CUresult(CUDAAPI* cuMemcpyBatchAsync)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t,
                                        MemcpyBatchAttributes*, size_t*, size_t, size_t*,
                                        CUstream) = nullptr;
  decltype(&::cuMemsetD8Async) cuMemsetD8Async = nullptr;
  decltype(&::cuMemsetD32Async) cuMemsetD32Async = nullptr;

  decltype(&::cuStreamCreate) cuStreamCreate = nullptr;
  decltype(&::cuStreamDestroy) cuStreamDestroy = nullptr;
  decltype(&::cuStreamSynchronize) cuStreamSynchronize = nullptr;
  decltype(&::cuStreamBeginCapture) cuStreamBeginCapture = nullptr;
  decltype(&::cuStreamEndCapture) cuStreamEndCapture = nullptr;
  decltype(&::cuStreamIsCapturing) cuStreamIsCapturing = nullptr;
  decltype(&::cuThreadExchangeStreamCaptureMode) cuThreadExchangeStreamCaptureMode = nullptr;
  decltype(&::cuEventCreate) cuEventCreate = nullptr;
  decltype(&::cuEventDestroy) cuEventDestroy = nullptr;
  decltype(&::cuEventRecord) cuEventRecord = nullptr;
  decltype(&::cuEventSynchronize) cuEventSynchronize = nullptr;
  CUresult(CUDAAPI* cuEventElapsedTime)(float*, CUevent, CUevent) = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) cuGraphInstantiateWithFlags = nullptr;
  decltype(&::cuGraphLaunch) cuGraphLaunch = nullptr;
  decltype(&::cuGraphExecDestroy) cuGraphExecDestroy = nullptr;
  decltype(&::cuGraphDestroy) cuGraphDestroy = nullptr;
};

class Driver : public DriverFunctions {
 public:
  // Opens the driver library `path` (a file, or a name for the dynamic linker), checks its version
  // and that every function is there, and initialises it. kDriverUnavailable says what failed. The
  // library is never closed.
  static Result<std::shared_ptr<const Driver>> open(const std::string& path);

  // As cuDriverGetVersion: 12040 is 12.4.
  int version() const { return version_; }
  const std::string& path() const { return path_; }
  // Whether this is pagejit's emulator: its kernels are host code, compiled for Target::host(sm).
  bool is_emulator() const { return is_emulator_; }
  // A symbol that the library exports beside the driver API (the emulator's own controls); null
  // where absent.
  void* symbol(const char* name) const;

  // ok, or kDriverError "cuLaunchKernelEx failed: CUDA_ERROR_INVALID_VALUE (1), invalid argument".
  Status check(CUresult result, std::string_view call) const {
    return result == CUDA_SUCCESS ? Status() : failure(result, call);
  }
  Status failure(CUresult result, std::string_view call) const;
  // "CUDA_ERROR_INVALID_VALUE (1)"
  std::string result_name(CUresult result) const;

 private:
  Driver() = default;
  Status resolve();

  void* library_ = nullptr;
  std::string path_;
  int version_ = 0;
  bool is_emulator_ = false;
};

// Which driver an engine uses; the fields are those of EngineOptions.
struct DriverRequest {
  std::string driver;
  bool allow_emulator = false;
  std::string emulator_path;
};

class Logger;

// The driver for `request`: the emulator where it is asked for or allowed and no CUDA driver works
// (one warning line). kDriverUnavailable lists what was tried.
Result<std::shared_ptr<const Driver>> open_driver(const DriverRequest& request,
                                                  const Logger& logger);

// Whether a result says that the driver (or the context) is already gone, as at the end of a
// process.
constexpr bool is_teardown(CUresult result) {
  return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace pagejit
