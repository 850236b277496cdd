#include "runtime/driver/driver.h"

#include <dlfcn.h>

#include <utility>

#include "runtime/format.h"
#include "runtime/loader_error.h"

namespace pagejit {
namespace {

// 12.0 brought cuLibraryLoadData (modules without a context) and cuGetProcAddress_v2.
constexpr int kMinimumVersion = 12000;
// cuFuncLoad came with 12.4; asked for with that version so that older drivers answer "not found".
constexpr int kFuncLoadVersion = 12040;
// 13.0 has another function by this name.
constexpr int kMemcpyBatchVersion = 12080;
// Exported by the emulator beside the driver API.
constexpr const char* kEmulatorMarker = "pagejit_emulator_abi";

std::string version_text(int version) {
  return format("{}.{}", version / 1000, version % 1000 / 10);
}

Status unavailable(std::string message, CUresult result = CUDA_SUCCESS) {
  return Status(StatusCode::kDriverUnavailable, std::move(message), {},
                {.cuda_result = static_cast<int>(result)});
}

// Resolves functions one by one and remembers the names that are missing.
class Resolver {
 public:
  explicit Resolver(decltype(&::cuGetProcAddress_v2) get_proc_address)
      : get_proc_address_(get_proc_address) {}

  template <class Function>
  void require(Function& function, const char* name) {
    if (!get(function, name, kMinimumVersion))
      missing_ += missing_.empty() ? name : format(", {}", name);
  }

  template <class Function>
  void optional(Function& function, const char* name, int version) {
    get(function, name, version);
  }

  const std::string& missing() const { return missing_; }

 private:
  template <class Function>
  bool get(Function& function, const char* name, int version) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result =
        get_proc_address_(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    if (result != CUDA_SUCCESS || address == nullptr) return false;
    function = reinterpret_cast<Function>(address);
    return true;
  }

  decltype(&::cuGetProcAddress_v2) get_proc_address_;
  std::string missing_;
};

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open(const std::string& path) {
  // RTLD_LOCAL: the emulator must not answer for libcuda to anyone else in the process.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unavailable(format("{} cannot be opened: {}", path, loader_error()));
  }
  std::shared_ptr<Driver> driver(new Driver);
  driver->library_ = library;
  driver->path_ = path;
  driver->is_emulator_ = dlsym(library, kEmulatorMarker) != nullptr;
  if (Status status = driver->resolve(); !status) return status;
  return std::shared_ptr<const Driver>(std::move(driver));
}

Status Driver::resolve() {
  auto get_version =
      reinterpret_cast<decltype(&::cuDriverGetVersion)>(dlsym(library_, "cuDriverGetVersion"));
  if (get_version == nullptr) {
    return unavailable(format("{} is no CUDA driver: it lacks cuDriverGetVersion", path_));
  }
  if (CUresult result = get_version(&version_); result != CUDA_SUCCESS) {
    return unavailable(
        format(
            "{}: cuDriverGetVersion failed with {}{}", path_, static_cast<int>(result),
            result == CUDA_ERROR_STUB_LIBRARY ? " (the toolkit's stub library, not a driver)" : ""),
        result);
  }
  if (version_ < kMinimumVersion) {
    return unavailable(
        format("{} supports CUDA {}, but 12.0 or later is needed: install a "
               "driver of version 525 or later",
               path_, version_text(version_)));
  }
  auto get_proc_address =
      reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(dlsym(library_, "cuGetProcAddress_v2"));
  if (get_proc_address == nullptr) {
    return unavailable(
        format("{} (CUDA {}) lacks cuGetProcAddress_v2", path_, version_text(version_)));
  }

  Resolver resolver(get_proc_address);
  resolver.require(cuGetErrorName, "cuGetErrorName");
  resolver.require(cuGetErrorString, "cuGetErrorString");
  resolver.require(cuInit, "cuInit");
  resolver.require(cuDriverGetVersion, "cuDriverGetVersion");
  resolver.require(cuDeviceGetCount, "cuDeviceGetCount");
  resolver.require(cuDeviceGet, "cuDeviceGet");
  resolver.require(cuDeviceGetName, "cuDeviceGetName");
  resolver.require(cuDeviceGetAttribute, "cuDeviceGetAttribute");
  resolver.require(cuDeviceTotalMem, "cuDeviceTotalMem");
  resolver.require(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  resolver.require(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease");
  resolver.require(cuCtxGetCurrent, "cuCtxGetCurrent");
  resolver.require(cuCtxSetCurrent, "cuCtxSetCurrent");
  resolver.require(cuCtxPushCurrent, "cuCtxPushCurrent");
  resolver.require(cuCtxPopCurrent, "cuCtxPopCurrent");
  resolver.require(cuCtxGetDevice, "cuCtxGetDevice");
  resolver.require(cuCtxGetId, "cuCtxGetId");
  resolver.require(cuCtxSynchronize, "cuCtxSynchronize");
  resolver.require(cuLibraryLoadData, "cuLibraryLoadData");
  resolver.require(cuLibraryUnload, "cuLibraryUnload");
  resolver.require(cuLibraryGetKernel, "cuLibraryGetKernel");
  resolver.require(cuKernelGetFunction, "cuKernelGetFunction");
  resolver.require(cuKernelSetAttribute, "cuKernelSetAttribute");
  resolver.require(cuKernelGetAttribute, "cuKernelGetAttribute");
  resolver.optional(cuFuncLoad, "cuFuncLoad", kFuncLoadVersion);
  resolver.require(cuOccupancyMaxActiveBlocksPerMultiprocessor,
                   "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  resolver.require(cuLaunchKernelEx, "cuLaunchKernelEx");
  resolver.require(cuMemAlloc, "cuMemAlloc");
  resolver.require(cuMemFree, "cuMemFree");
  resolver.require(cuMemGetInfo, "cuMemGetInfo");
  resolver.require(cuMemcpyHtoD, "cuMemcpyHtoD");
  resolver.require(cuMemcpyDtoH, "cuMemcpyDtoH");
  resolver.require(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync");
  resolver.require(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync");
  resolver.require(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync");
  resolver.optional(cuMemcpyBatchAsync, "cuMemcpyBatchAsync", kMemcpyBatchVersion);
  resolver.require(cuMemsetD8Async, "cuMemsetD8Async");
  resolver.require(cuMemsetD32Async, "cuMemsetD32Async");
  resolver.require(cuStreamCreate, "cuStreamCreate");
  resolver.require(cuStreamDestroy, "cuStreamDestroy");
  resolver.require(cuStreamSynchronize, "cuStreamSynchronize");
  resolver.require(cuStreamBeginCapture, "cuStreamBeginCapture");
  resolver.require(cuStreamEndCapture, "cuStreamEndCapture");
  resolver.require(cuStreamIsCapturing, "cuStreamIsCapturing");
  resolver.require(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  resolver.require(cuEventCreate, "cuEventCreate");
  resolver.require(cuEventDestroy, "cuEventDestroy");
  resolver.require(cuEventRecord, "cuEventRecord");
  resolver.require(cuEventSynchronize, "cuEventSynchronize");
  resolver.require(cuEventElapsedTime, "cuEventElapsedTime");
  resolver.require(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  resolver.require(cuGraphLaunch, "cuGraphLaunch");
  resolver.require(cuGraphExecDestroy, "cuGraphExecDestroy");
  resolver.require(cuGraphDestroy, "cuGraphDestroy");
  if (!resolver.missing().empty()) {
    return unavailable(
        format("{} (CUDA {}) lacks {}", path_, version_text(version_), resolver.missing()));
  }
  if (CUresult result = cuInit(0); result != CUDA_SUCCESS) {
    return unavailable(format("{} does not work: {}", path_, failure(result, "cuInit").message()),
                       result);
  }
  return {};
}

void* Driver::symbol(const char* name) const { return dlsym(library_, name); }

std::string Driver::result_name(CUresult result) const {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    name = "unknown CUresult";
  }
  return format("{} ({})", name, static_cast<int>(result));
}

Status Driver::failure(CUresult result, std::string_view call) const {
  std::string message = format("{} failed: {}", call, result_name(result));
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr) {
    message += format(", {}", text);
  }
  // The emulator knows more than a number: the thread, the line and the value.
  std::string report;
  if (is_emulator_) {
    auto last_report = reinterpret_cast<const char* (*)()>(symbol("pagejit_emulator_last_report"));
    if (last_report != nullptr) report = last_report();
  }
  return Status(StatusCode::kDriverError, std::move(message), std::move(report),
                {.cuda_result = static_cast<int>(result)});
}

}  // namespace pagejit
