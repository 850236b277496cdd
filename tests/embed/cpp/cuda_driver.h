// The few functions of the CUDA driver API that this program needs, and memory that is freed by its
// owner. They are loaded from the library that pagejit's engine uses, so that the program also runs
// on pagejit's CPU emulator (PAGEJIT_DRIVER=emulator); a program that is only for GPUs includes
// <cuda.h> and links libcuda instead of this file. Everything is for one thread.
#pragma once

#include <pagejit/options.h>
#include <pagejit/status.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// As in <cuda.h>.
using CUdeviceptr = unsigned long long;
using CUstream = struct CUstream_st*;
using CUcontext = struct CUctx_st*;

// This program reports errors by exceptions; pagejit itself never throws.
inline void require(const pagejit::Status& status) {
  if (!status) throw std::runtime_error(status.to_string());
}
template <class T>
T require(pagejit::Result<T> result) {
  require(result.status());
  return *std::move(result);
}

// Device 0 with its primary context, which is current, and a stream.
class CudaDriver {
 public:
  explicit CudaDriver(const pagejit::EngineOptions& options);
  ~CudaDriver();
  CudaDriver(const CudaDriver&) = delete;

  CUstream stream() const { return stream_; }
  void synchronize() const { check(cuStreamSynchronize(stream_), "cuStreamSynchronize"); }
  // Throws where `result`, a CUresult, is an error.
  void check(int result, const char* call) const;

  int (*cuMemAlloc)(CUdeviceptr*, size_t);
  int (*cuMemFree)(CUdeviceptr);
  int (*cuMemHostAlloc)(void**, size_t, unsigned);
  int (*cuMemFreeHost)(void*);
  int (*cuMemcpyHtoDAsync)(CUdeviceptr, const void*, size_t, CUstream);
  int (*cuMemcpyDtoHAsync)(void*, CUdeviceptr, size_t, CUstream);
  int (*cuMemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);

 private:
  int (*cuGetErrorName)(int, const char**) = nullptr;
  int (*cuStreamSynchronize)(CUstream) = nullptr;
  int (*cuStreamDestroy)(CUstream) = nullptr;
  int (*cuDevicePrimaryCtxRelease)(int) = nullptr;
  CUstream stream_ = nullptr;
};

// Device memory.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const CudaDriver& cuda, size_t bytes);
  // A copy of `host` on the device.
  template <class T>
  DeviceBuffer(const CudaDriver& cuda, const std::vector<T>& host)
      : DeviceBuffer(cuda, host.size() * sizeof(T)) {
    upload(host.data());
  }
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // As many bytes as the buffer has, in the stream's order.
  void upload(const void* host);
  // Waits for the stream.
  void download(void* host) const;
  void fill(size_t offset, size_t bytes, unsigned char value);

  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address_));
  }
  size_t size() const { return bytes_; }

 private:
  const CudaDriver* cuda_ = nullptr;
  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
};

// Pinned host memory, which swaps copy from and to without waiting.
class PinnedBuffer {
 public:
  PinnedBuffer(const CudaDriver& cuda, size_t bytes);
  ~PinnedBuffer() { cuda_.cuMemFreeHost(data_); }
  PinnedBuffer(const PinnedBuffer&) = delete;

  void* data() const { return data_; }

 private:
  const CudaDriver& cuda_;
  void* data_ = nullptr;
};
