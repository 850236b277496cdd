#include "cuda_driver.h"

#include <dlfcn.h>

namespace {

// The library that an engine with these options uses. The emulator lies beside libpagejit.so, in a
// folder that the linker has noted in this program.
std::string driver_file(const pagejit::EngineOptions& options) {
  if (options.driver.empty()) return "libcuda.so.1";
  if (options.driver != "emulator") return options.driver;
  return options.emulator_path.empty() ? "libpagejit-emulator.so" : options.emulator_path;
}

template <class Function>
void load(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
}

}  // namespace

CudaDriver::CudaDriver(const pagejit::EngineOptions& options) {
  const std::string file = driver_file(options);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(file + " cannot be opened: " + dlerror());

  // The names that <cuda.h> gives these functions by macros.
  int (*cuInit)(unsigned);
  int (*cuDevicePrimaryCtxRetain)(CUcontext*, int);
  int (*cuCtxSetCurrent)(CUcontext);
  int (*cuStreamCreate)(CUstream*, unsigned);
  load(library, "cuInit", cuInit);
  load(library, "cuGetErrorName", cuGetErrorName);
  load(library, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain);
  load(library, "cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease);
  load(library, "cuCtxSetCurrent", cuCtxSetCurrent);
  load(library, "cuStreamCreate", cuStreamCreate);
  load(library, "cuStreamSynchronize", cuStreamSynchronize);
  load(library, "cuStreamDestroy_v2", cuStreamDestroy);
  load(library, "cuMemAlloc_v2", cuMemAlloc);
  load(library, "cuMemFree_v2", cuMemFree);
  load(library, "cuMemHostAlloc", cuMemHostAlloc);
  load(library, "cuMemFreeHost", cuMemFreeHost);
  load(library, "cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync);
  load(library, "cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync);
  load(library, "cuMemsetD8Async", cuMemsetD8Async);

  CUcontext context = nullptr;
  constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuStreamCreate(&stream_, kNonBlocking), "cuStreamCreate");
}

CudaDriver::~CudaDriver() {
  cuStreamDestroy(stream_);
  cuDevicePrimaryCtxRelease(0);
}

void CudaDriver::check(int result, const char* call) const {
  if (result == 0) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string(call) + " failed: " + (name != nullptr ? name : "unknown") +
                           " (" + std::to_string(result) + ")");
}

DeviceBuffer::DeviceBuffer(const CudaDriver& cuda, size_t bytes) : cuda_(&cuda), bytes_(bytes) {
  cuda.check(cuda.cuMemAlloc(&address_, bytes), "cuMemAlloc");
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0) cuda_->cuMemFree(address_);  // waits for launches that use it
}

void DeviceBuffer::upload(const void* host) {
  cuda_->check(cuda_->cuMemcpyHtoDAsync(address_, host, bytes_, cuda_->stream()),
               "cuMemcpyHtoDAsync");
}

void DeviceBuffer::download(void* host) const {
  cuda_->check(cuda_->cuMemcpyDtoHAsync(host, address_, bytes_, cuda_->stream()),
               "cuMemcpyDtoHAsync");
  cuda_->synchronize();
}

void DeviceBuffer::fill(size_t offset, size_t bytes, unsigned char value) {
  cuda_->check(cuda_->cuMemsetD8Async(address_ + offset, value, bytes, cuda_->stream()),
               "cuMemsetD8Async");
}

PinnedBuffer::PinnedBuffer(const CudaDriver& cuda, size_t bytes) : cuda_(cuda) {
  cuda.check(cuda.cuMemHostAlloc(&data_, bytes, 0), "cuMemHostAlloc");
}
