// LoadedModule: one image in the driver. LoadedKernel: one kernel of it, of any family, ready on
// one device; what a handle points to. Thread-safety: launching reads only constants and one flag;
// make_resident() locks.
//
// A module is unloaded when no LoadedKernel uses it any more. A LoadedKernel that was launched
// first synchronises every context it was made resident in; where that fails for another reason
// than that the context is gone, the module stays loaded for good: leaking it is better than
// pulling the code from under a running kernel.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/driver/driver.h"
#include "runtime/engine/device.h"

namespace pagejit {

class LoadedModule {
 public:
  // kDriverError where a call failed; *rejected tells that the driver refused the image itself.
  static Result<std::shared_ptr<LoadedModule>> load(std::shared_ptr<const Driver> driver,
                                                    const std::string& image,
                                                    const std::string& symbol, bool* rejected);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  CUkernel kernel() const { return kernel_; }
  // False in a process that was forked since: the driver does not know the module there.
  bool is_of_this_process() const { return process_ == ::getpid(); }
  // Never unload.
  void abandon() { abandoned_.store(true, std::memory_order_relaxed); }

 private:
  explicit LoadedModule(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}
  std::shared_ptr<const Driver> driver_;
  const pid_t process_ = ::getpid();
  CUlibrary library_ = nullptr;
  CUkernel kernel_ = nullptr;
  std::atomic<bool> abandoned_{false};
};

// What a kernel is and where it came from; the parts of a LoadedKernel that are known before it is
// loaded.
struct LoadedKernelParts {
  std::shared_ptr<const Driver> driver;
  std::shared_ptr<LoadedModule> module;
  AnyConfig config;
  KernelInfo info;
};

// The grid of a launch.
struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct LoadedKernel {
  // Sets the kernel up on the device of `where` and makes it resident there. *rejected as in
  // LoadedModule::load.
  static Result<std::shared_ptr<LoadedKernel>> create(LoadedKernelParts parts,
                                                      const DeviceContext& where, bool* rejected);
  LoadedKernel(LoadedKernelParts loaded_parts, CUdevice on_device);
  virtual ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  // Loads the code into `where` now, once per context, so that the first launch there may be
  // captured.
  Status make_resident(const DeviceContext& where, bool* rejected);

  // Whether make_resident() would find nothing to do.
  bool is_resident(const DeviceContext& where) const;

  // Enqueues one launch; `params` points to the struct that the kernel takes. Allocates and locks
  // nothing on success.
  Status launch(Grid grid, void* params, Stream stream) const;

  // Read by every launch.
  const LoadedKernelParts parts;
  const CUkernel kernel;
  const CUdevice device;
  const unsigned threads_per_cta;
  const unsigned shared_bytes;  // dynamic
  const bool pdl;               // as its cache entry says
  mutable std::atomic<bool> launched{false};

 private:
  // For what a family has to know of its device: once, before the kernel is used.
  virtual void describe_device(const DeviceInfo& info, int ctas_per_sm);
  Status set_up(const DeviceContext& where, bool* rejected);
  bool is_resident_locked(const DeviceContext& where) const;

  mutable std::mutex mutex_;
  std::vector<DeviceContext> contexts_;  // where the code is resident
};

// The constants of a kernel, whose configuration is a `Config`.
template <class Config>
const auto& constants_of(const LoadedKernel& kernel) {
  return std::get_if<Config>(&kernel.parts.config)->constants;
}

}  // namespace pagejit
