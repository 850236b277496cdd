#include "tools/check/device_buffer.h"

#include <string>

#include "runtime/logger.h"

namespace pagejit {

Result<std::unique_ptr<DeviceSession>> DeviceSession::open(const EngineOptions& options,
                                                           int device) {
  const Logger logger(options.log_level, options.log_callback);
  const DriverRequest request{options.driver, options.allow_emulator, options.emulator_path};
  Result<std::shared_ptr<const Driver>> opened = open_driver(request, logger);
  if (!opened) return opened.status();
  const Driver& driver = **opened;

  int count = 0;
  if (Status status = driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"); !status) {
    return status;
  }
  if (device < 0 || device >= count) {
    return Status(StatusCode::kNotFound, "device " + std::to_string(device) + ": there are " +
                                             std::to_string(count) + " devices");
  }
  std::unique_ptr<DeviceSession> session(new DeviceSession(*opened, device));
  CUcontext context = nullptr;
  Status status = driver.check(driver.cuDeviceGet(&session->handle_, device), "cuDeviceGet");
  if (status) {
    status = driver.check(driver.cuDevicePrimaryCtxRetain(&context, session->handle_),
                          "cuDevicePrimaryCtxRetain");
    session->is_retained_ = status.is_ok();
  }
  if (status) {
    status = driver.check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    session->is_pushed_ = status.is_ok();
  }
  if (!status) return status;
  return session;
}

DeviceSession::~DeviceSession() {
  CUcontext popped = nullptr;
  if (is_pushed_) driver_->cuCtxPopCurrent(&popped);
  if (is_retained_) driver_->cuDevicePrimaryCtxRelease(handle_);
}

Status DeviceSession::synchronize() const {
  return driver_->check(driver_->cuCtxSynchronize(), "cuCtxSynchronize");
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0) driver_->cuMemFree(address_);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(address_, other.address_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Result<DeviceBuffer> DeviceBuffer::allocate(const DeviceSession& session, size_t bytes) {
  DeviceBuffer buffer;
  buffer.driver_ = session.driver_;
  if (bytes == 0) return buffer;
  const CUresult result = session.driver_->cuMemAlloc(&buffer.address_, bytes);
  if (result != CUDA_SUCCESS) {
    buffer.address_ = 0;
    return session.driver_->failure(result, "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  }
  buffer.size_bytes_ = bytes;
  return buffer;
}

Result<DeviceBuffer> DeviceBuffer::copy_of(const DeviceSession& session, const void* host,
                                           size_t bytes) {
  Result<DeviceBuffer> buffer = allocate(session, bytes);
  if (!buffer) return buffer;
  if (Status status = buffer->upload(0, host, bytes); !status) return status;
  return buffer;
}

Status DeviceBuffer::check_range(size_t offset_bytes, size_t bytes) const {
  if (offset_bytes <= size_bytes_ && bytes <= size_bytes_ - offset_bytes) return {};
  return Status(StatusCode::kInvalidArgument,
                std::to_string(bytes) + " bytes at " + std::to_string(offset_bytes) +
                    " of a device buffer of " + std::to_string(size_bytes_));
}

Status DeviceBuffer::upload(size_t offset_bytes, const void* host, size_t bytes) {
  if (Status status = check_range(offset_bytes, bytes); !status || bytes == 0) return status;
  return driver_->check(driver_->cuMemcpyHtoD(address_ + offset_bytes, host, bytes),
                        "cuMemcpyHtoD");
}

Status DeviceBuffer::download(size_t offset_bytes, void* host, size_t bytes) const {
  if (Status status = check_range(offset_bytes, bytes); !status || bytes == 0) return status;
  return driver_->check(driver_->cuMemcpyDtoH(host, address_ + offset_bytes, bytes),
                        "cuMemcpyDtoH");
}

}  // namespace pagejit
