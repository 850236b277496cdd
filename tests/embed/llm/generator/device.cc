#include "device.h"

#include <dlfcn.h>

#include <utility>

namespace llm {

using pagejit::Result;
using pagejit::Status;
using pagejit::StatusCode;

namespace {

// Beside libpagejit, so that this program's own search path leads there.
constexpr char kEmulator[] = "libpagejit-emulator.so";

// The beginning of what runtime/emulator/emulator.h declares: struct_size says how much is wanted.
struct EmulatorCounters {
  size_t struct_size;
  uint64_t launches;
};

}  // namespace

Result<std::shared_ptr<Device>> Device::open(const pagejit::EngineOptions& options) {
  const std::string emulator = options.emulator_path.empty() ? kEmulator : options.emulator_path;
  std::string path = options.driver.empty() ? "libcuda.so.1" : options.driver;
  if (path == "emulator") path = emulator;

  std::shared_ptr<Device> device(new Device());
  Status status = device->load(path);
  if (!status && options.driver.empty() && options.allow_emulator) status = device->load(emulator);
  if (status) status = device->check(device->functions_.init(0), "cuInit");
  if (status)
    status = device->check(device->functions_.device_get(&device->device_, 0), "cuDeviceGet");
  if (!status) return status;
  void* context = nullptr;
  status = device->check(device->functions_.retain(&context, device->device_),
                         "cuDevicePrimaryCtxRetain");
  if (!status) return status;
  device->is_retained_ = true;
  status = device->check(device->functions_.set_current(context), "cuCtxSetCurrent");
  if (!status) return status;
  return device;
}

Device::~Device() {
  if (is_retained_) functions_.release(device_);
}

Status Device::load(const std::string& path) {
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library_ == nullptr) return Status(StatusCode::kNotFound, dlerror());
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) missing += std::string(" ") + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(functions_.init, "cuInit");
  find(functions_.device_get, "cuDeviceGet");
  find(functions_.retain, "cuDevicePrimaryCtxRetain");
  find(functions_.release, "cuDevicePrimaryCtxRelease_v2");
  find(functions_.set_current, "cuCtxSetCurrent");
  find(functions_.allocate, "cuMemAlloc_v2");
  find(functions_.free, "cuMemFree_v2");
  find(functions_.to_device, "cuMemcpyHtoD_v2");
  find(functions_.to_host, "cuMemcpyDtoH_v2");
  find(functions_.fill, "cuMemsetD8_v2");
  find(functions_.error_name, "cuGetErrorName");
  if (missing.empty()) return {};
  return Status(StatusCode::kNotFound, path + " has no" + missing);
}

Status Device::check(int result, const std::string& call) const {
  if (result == 0) return {};  // CUDA_SUCCESS
  const char* name = nullptr;
  functions_.error_name(result, &name);
  return Status(StatusCode::kDriverError,
                call + ": " + (name != nullptr ? name : std::to_string(result)));
}

std::optional<uint64_t> Device::emulated_launches() const {
  using Read = void (*)(EmulatorCounters*);
  const auto read = reinterpret_cast<Read>(dlsym(library_, "pagejit_emulator_counters"));
  if (read == nullptr) return std::nullopt;
  EmulatorCounters counters{sizeof(EmulatorCounters), 0};
  read(&counters);
  return counters.launches;
}

Result<DeviceBuffer> DeviceBuffer::allocate(std::shared_ptr<const Device> device, size_t bytes) {
  DeviceBuffer buffer;
  const int result = device->functions_.allocate(&buffer.address_, bytes);
  if (Status status = device->check(result, "cuMemAlloc of " + std::to_string(bytes) + " bytes");
      !status) {
    return status;
  }
  buffer.bytes_ = bytes;
  buffer.device_ = std::move(device);
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (device_ != nullptr) device_->functions_.free(address_);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Status DeviceBuffer::upload_bytes(const void* from, size_t bytes) const {
  if (bytes > bytes_) return Status(StatusCode::kInvalidArgument, "upload: too long");
  if (bytes == 0) return {};
  return device_->check(device_->functions_.to_device(address_, from, bytes), "cuMemcpyHtoD");
}

Status DeviceBuffer::download_bytes(void* to, size_t bytes) const {
  if (bytes > bytes_) return Status(StatusCode::kInvalidArgument, "download: too long");
  if (bytes == 0) return {};
  return device_->check(device_->functions_.to_host(to, address_, bytes), "cuMemcpyDtoH");
}

Status DeviceBuffer::fill(unsigned char value) const {
  return device_->check(device_->functions_.fill(address_, value, bytes_), "cuMemsetD8");
}

}  // namespace llm
