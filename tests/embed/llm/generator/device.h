// The few functions of the CUDA driver that this program calls itself, and device memory. They come
// from the library that the engine uses too: libcuda.so.1, or pagejit's emulator, which exports the
// same names. Not here: streams (everything is enqueued on the default one) and kernels, which are
// the engine's. Thread-safety: one thread.
#pragma once

#include <pagejit/options.h>
#include <pagejit/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llm {

// The first GPU, with its primary context current as long as this lives.
class Device {
 public:
  // By options.driver, emulator_path and allow_emulator, as the engine reads them. kNotFound,
  // kDriverError.
  static pagejit::Result<std::shared_ptr<Device>> open(const pagejit::EngineOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Launches since the emulator was loaded; none on a GPU, whose driver does not count.
  std::optional<uint64_t> emulated_launches() const;

 private:
  friend class DeviceBuffer;
  // From cuda.h: CUresult, CUdevice, CUcontext, CUdeviceptr.
  using Address = unsigned long long;
  struct Functions {
    int (*init)(unsigned flags);
    int (*device_get)(int* device, int ordinal);
    int (*retain)(void** context, int device);
    int (*release)(int device);
    int (*set_current)(void* context);
    int (*allocate)(Address* address, size_t bytes);
    int (*free)(Address address);
    int (*to_device)(Address to, const void* from, size_t bytes);
    int (*to_host)(void* to, Address from, size_t bytes);
    int (*fill)(Address to, unsigned char value, size_t bytes);
    int (*error_name)(int result, const char** name);
  };

  Device() = default;
  pagejit::Status load(const std::string& path);
  pagejit::Status check(int result, const std::string& call) const;

  void* library_ = nullptr;  // never closed, as the engine does not close it either
  Functions functions_{};
  int device_ = 0;
  bool is_retained_ = false;
};

// Device memory, freed with this. Copies to and from it wait until they, and what was launched
// before them, are done.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;  // no memory
  static pagejit::Result<DeviceBuffer> allocate(std::shared_ptr<const Device> device, size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  void* get() const { return reinterpret_cast<void*>(address_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(get());
  }

  // From and to the beginning of the memory; kInvalidArgument where it is smaller.
  template <class T>
  pagejit::Status upload(const std::vector<T>& values) const {
    return upload_bytes(values.data(), values.size() * sizeof(T));
  }
  pagejit::Status upload_bytes(const void* from, size_t bytes) const;
  pagejit::Status download_bytes(void* to, size_t bytes) const;
  pagejit::Status fill(unsigned char value) const;

 private:
  std::shared_ptr<const Device> device_;
  Device::Address address_ = 0;
  size_t bytes_ = 0;
};

}  // namespace llm
