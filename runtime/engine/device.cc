#include "runtime/engine/device.h"

#include <utility>

#include "runtime/format.h"

namespace pagejit {
namespace {

// Kernels reach this part of the bandwidth that clock and bus width promise (H200: 4.2 of 4.9
// TB/s).
constexpr double kReachableBandwidth = 0.85;

}  // namespace

std::string device_name(const Driver& driver, CUdevice device) {
  char name[256] = {};  // as long as the driver's names get (CUDA's samples)
  if (driver.cuDeviceGetName(name, sizeof(name) - 1, device) != CUDA_SUCCESS) return {};
  return name;
}

Result<std::shared_ptr<PrimaryContext>> PrimaryContext::retain(std::shared_ptr<const Driver> driver,
                                                               CUdevice device) {
  CUcontext context = nullptr;
  const CUresult result = driver->cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return driver->failure(result, "cuDevicePrimaryCtxRetain");
  return std::shared_ptr<PrimaryContext>(new PrimaryContext(std::move(driver), device, context));
}

PrimaryContext::~PrimaryContext() {
  if (process_ != ::getpid()) return;  // forked since: it is the parent's
  // Fails where the driver is already shut down; then there is nothing left to release.
  driver_->cuDevicePrimaryCtxRelease(device_);
}

ContextScope::ContextScope(const Driver& driver, CUcontext context)
    : driver_(driver), result_(driver.cuCtxPushCurrent(context)) {
  if (result_ == CUDA_SUCCESS) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
}

ContextScope::~ContextScope() {
  if (result_ != CUDA_SUCCESS) return;
  driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  CUcontext popped = nullptr;
  driver_.cuCtxPopCurrent(&popped);
}

Result<CUdevice> Devices::current_device() const {
  CUcontext context = nullptr;
  if (Status status = driver_->check(driver_->cuCtxGetCurrent(&context), "cuCtxGetCurrent");
      !status) {
    return status;
  }
  if (context == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "device -1: means the device of the current context, but the calling thread has "
                  "none; make one current, or give the device's ordinal");
  }
  CUdevice device = 0;
  if (Status status = driver_->check(driver_->cuCtxGetDevice(&device), "cuCtxGetDevice"); !status) {
    return status;
  }
  return device;
}

Result<CUdevice> Devices::device_of_ordinal(int ordinal) const {
  int count = 0;
  if (Status status = driver_->check(driver_->cuDeviceGetCount(&count), "cuDeviceGetCount");
      !status) {
    return status;
  }
  if (ordinal >= count) {
    return Status(StatusCode::kNotFound, format("device {}: the driver has {} device{}", ordinal,
                                                count, count == 1 ? "" : "s"));
  }
  CUdevice device = 0;
  if (Status status = driver_->check(driver_->cuDeviceGet(&device, ordinal), "cuDeviceGet");
      !status) {
    return status;
  }
  return device;
}

Result<DeviceInfo> Devices::query(CUdevice device) {
  std::lock_guard lock(mutex_);
  if (auto found = infos_.find(device); found != infos_.end()) return found->second;
  int major = 0, minor = 0, num_sms = 0;
  const std::pair<CUdevice_attribute, int*> needed[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &num_sms}};
  for (auto [attribute, value] : needed) {
    const CUresult result = driver_->cuDeviceGetAttribute(value, attribute, device);
    if (result != CUDA_SUCCESS) return driver_->failure(result, "cuDeviceGetAttribute");
  }
  // Only steer the number of splits: a driver that does not know them is no failure.
  int clock_khz = 0, bus_bits = 0;
  driver_->cuDeviceGetAttribute(&clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
  driver_->cuDeviceGetAttribute(&bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);

  // Only spares a load that would fail.
  int max_shared = 0;
  driver_->cuDeviceGetAttribute(&max_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                device);

  DeviceInfo info{.device = device, .sm = major * 10 + minor, .num_sms = num_sms};
  // Two transfers per clock.
  info.bytes_per_ns = 2.0 * clock_khz * 1e-6 * bus_bits / 8 * kReachableBandwidth;
  info.max_shared_bytes = max_shared;
  infos_.emplace(device, info);
  return info;
}

Result<DeviceInfo> Devices::info_of(int ordinal) {
  if (ordinal < -1) {
    return Status(StatusCode::kInvalidArgument,
                  format("device {}: must be -1 (of the current context) or an ordinal", ordinal));
  }
  Result<CUdevice> device = ordinal == -1 ? current_device() : device_of_ordinal(ordinal);
  if (!device) return device.status();
  return query(*device);
}

Result<DeviceContext> Devices::context_of(int ordinal) {
  Result<DeviceInfo> info = info_of(ordinal);
  if (!info) return info.status();
  DeviceContext where{.info = *info};
  if (ordinal == -1) {
    const CUresult result = driver_->cuCtxGetCurrent(&where.context);
    if (result != CUDA_SUCCESS) return driver_->failure(result, "cuCtxGetCurrent");
  } else {
    std::lock_guard lock(mutex_);
    std::shared_ptr<PrimaryContext>& primary = primaries_[where.info.device];
    if (primary == nullptr) {
      Result<std::shared_ptr<PrimaryContext>> retained =
          PrimaryContext::retain(driver_, where.info.device);
      if (!retained) return retained.status();
      primary = std::move(retained).value();
    }
    where.primary = primary;
    where.context = primary->get();
  }
  const CUresult result = driver_->cuCtxGetId(where.context, &where.context_id);
  if (result != CUDA_SUCCESS) return driver_->failure(result, "cuCtxGetId");
  return where;
}

}  // namespace pagejit
