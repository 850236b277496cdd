// DeviceSession and DeviceBuffer: the device that a check runs on, and memory there. On the
// emulator the same, on host memory. Not for the library: kernels are launched through pagejit's
// public API. Thread-safety: one thread; a session's context is current in the thread that opened
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "pagejit/engine.h"
#include "runtime/driver/driver.h"

namespace pagejit {

// The primary context of one device, current from open() to the destructor. Sessions end in the
// reverse order of their opening.
class DeviceSession {
 public:
  // Opens the driver that an engine with these options uses. kDriverUnavailable, kNotFound,
  // kDriverError.
  static Result<std::unique_ptr<DeviceSession>> open(const EngineOptions& options, int device = 0);
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  const Driver& driver() const { return *driver_; }
  int device() const { return device_; }
  bool is_emulator() const { return driver_->is_emulator(); }
  // Waits for all work of the context.
  Status synchronize() const;

 private:
  friend class DeviceBuffer;
  DeviceSession(std::shared_ptr<const Driver> driver, int device)
      : driver_(std::move(driver)), device_(device) {}
  std::shared_ptr<const Driver> driver_;
  int device_;
  CUdevice handle_ = 0;
  bool is_retained_ = false;
  bool is_pushed_ = false;
};

// Device memory, freed by the destructor; the session must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  // Uninitialised. 0 bytes give a buffer whose data() is null.
  static Result<DeviceBuffer> allocate(const DeviceSession& session, size_t bytes);
  // `bytes` from `host`.
  static Result<DeviceBuffer> copy_of(const DeviceSession& session, const void* host, size_t bytes);

  // Blocking copies of `bytes` at `offset_bytes`; kInvalidArgument beyond the end.
  Status upload(size_t offset_bytes, const void* host, size_t bytes);
  Status download(size_t offset_bytes, void* host, size_t bytes) const;

  size_t size_bytes() const { return size_bytes_; }
  CUdeviceptr address() const { return address_; }
  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address_));
  }

 private:
  Status check_range(size_t offset_bytes, size_t bytes) const;

  std::shared_ptr<const Driver> driver_;
  CUdeviceptr address_ = 0;
  size_t size_bytes_ = 0;
};

}  // namespace pagejit
