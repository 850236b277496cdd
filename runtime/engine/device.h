// Devices: what the engine knows of each GPU, and the contexts in which it works. Not a context
// manager for callers: their current context is always as it was when a call returns.
// Thread-safety: all functions may be called from several threads at once; scopes belong to their
// thread.
#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "pagejit/status.h"
#include "runtime/driver/driver.h"

namespace pagejit {

// A device's primary context, retained as long as this object lives.
class PrimaryContext {
 public:
  static Result<std::shared_ptr<PrimaryContext>> retain(std::shared_ptr<const Driver> driver,
                                                        CUdevice device);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  CUcontext get() const { return context_; }

 private:
  PrimaryContext(std::shared_ptr<const Driver> driver, CUdevice device, CUcontext context)
      : driver_(std::move(driver)), device_(device), context_(context) {}
  std::shared_ptr<const Driver> driver_;
  CUdevice device_;
  CUcontext context_;
  const pid_t process_ = ::getpid();
};

struct DeviceInfo {
  CUdevice device = 0;
  int sm = 0;  // compute capability, major * 10 + minor
  int num_sms = 0;
  double bytes_per_ns = 0;   // of memory bandwidth that kernels reach; 0 = unknown
  int max_shared_bytes = 0;  // that a CTA may ask for; 0 = unknown
};

// As the driver calls it ("NVIDIA H200"); "" where it does not say.
std::string device_name(const Driver& driver, CUdevice device);

// A context that work is done in, and what keeps it alive.
struct DeviceContext {
  DeviceInfo info;
  CUcontext context = nullptr;
  unsigned long long context_id = 0;  // tells a context from a later one at the same address
  std::shared_ptr<PrimaryContext> primary = nullptr;  // null where the context is the caller's
};

// Makes a context current for a scope, and lets the scope call what the driver forbids while
// another stream of the process is being captured in global mode (loading, allocating): such calls
// do not touch that capture.
class ContextScope {
 public:
  ContextScope(const Driver& driver, CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  CUresult result() const { return result_; }  // of making it current

 private:
  const Driver& driver_;
  CUresult result_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class Devices {
 public:
  explicit Devices(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  // -1: the calling thread's current context, kInvalidArgument without one. >= 0: the ordinal's
  // primary context, kNotFound where there is no such device.
  Result<DeviceContext> context_of(int ordinal);
  // The same without a context. -1: the device of the current context.
  Result<DeviceInfo> info_of(int ordinal);

 private:
  Result<CUdevice> current_device() const;
  Result<CUdevice> device_of_ordinal(int ordinal) const;
  Result<DeviceInfo> query(CUdevice device);

  std::shared_ptr<const Driver> driver_;
  std::mutex mutex_;
  std::map<CUdevice, DeviceInfo> infos_;
  std::map<CUdevice, std::shared_ptr<PrimaryContext>> primaries_;
};

}  // namespace pagejit
