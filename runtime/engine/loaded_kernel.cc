#include "runtime/engine/loaded_kernel.h"

#include <utility>

#include "generator/families.h"
#include "runtime/engine/loaded_attention.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

// Results by which a driver refuses an image, as opposed to being out of memory or broken.
bool is_rejection(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NOT_FOUND:  // no kernel of that name in it
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
      return true;
    default:
      return false;
  }
}

// A launch in a context of another device fails in ways that do not say so; this does.
[[gnu::cold, gnu::noinline]] Status launch_failure(const LoadedKernel& kernel, CUresult result) {
  const Driver& driver = *kernel.parts.driver;
  Status status = driver.failure(result, "cuLaunchKernelEx");
  CUdevice device = 0;
  if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS && device != kernel.device) {
    status = status.with_message(
        format("{}; the kernel was prepared for device {}, but the current context "
               "belongs to device {}",
               status.message(), kernel.device, device));
  }
  return status.with_spec(spec_text(kernel.parts.config));
}

}  // namespace

Result<std::shared_ptr<LoadedModule>> LoadedModule::load(std::shared_ptr<const Driver> driver,
                                                         const std::string& image,
                                                         const std::string& symbol,
                                                         bool* rejected) {
  std::shared_ptr<LoadedModule> module(new LoadedModule(std::move(driver)));
  const Driver& api = *module->driver_;
  CUresult result = api.cuLibraryLoadData(&module->library_, image.data(), nullptr, nullptr, 0,
                                          nullptr, nullptr, 0);
  if (result != CUDA_SUCCESS) {
    module->library_ = nullptr;
    *rejected = is_rejection(result);
    return api.failure(result, "cuLibraryLoadData");
  }
  result = api.cuLibraryGetKernel(&module->kernel_, module->library_, symbol.c_str());
  if (result != CUDA_SUCCESS) {
    *rejected = is_rejection(result);
    return api.failure(result, format("cuLibraryGetKernel(\"{}\")", symbol));
  }
  return module;
}

LoadedModule::~LoadedModule() {
  if (library_ == nullptr || !is_of_this_process()) return;
  if (abandoned_.load(std::memory_order_relaxed)) return;
  driver_->cuLibraryUnload(library_);  // fails where the driver is shut down: nothing is left then
}

LoadedKernel::LoadedKernel(LoadedKernelParts loaded_parts, CUdevice on_device)
    : parts(std::move(loaded_parts)),
      kernel(parts.module->kernel()),
      device(on_device),
      threads_per_cta(static_cast<unsigned>(pagejit::threads_per_cta(parts.config))),
      shared_bytes(static_cast<unsigned>(pagejit::shared_bytes(parts.config))),
      pdl(parts.info.pdl) {}

void LoadedKernel::describe_device(const DeviceInfo&, int) {}

Result<std::shared_ptr<LoadedKernel>> LoadedKernel::create(LoadedKernelParts parts,
                                                           const DeviceContext& where,
                                                           bool* rejected) {
  std::shared_ptr<LoadedKernel> loaded;
  if (std::holds_alternative<KernelConfig>(parts.config)) {
    loaded = std::make_shared<LoadedAttention>(std::move(parts), where.info.device);
  } else {
    loaded = std::make_shared<LoadedKernel>(std::move(parts), where.info.device);
  }
  if (Status status = loaded->set_up(where, rejected); !status) return status;
  return loaded;
}

Status LoadedKernel::set_up(const DeviceContext& where, bool* rejected) {
  const Driver& driver = *parts.driver;
  CUresult result =
      driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(shared_bytes), kernel, where.info.device);
  if (result != CUDA_SUCCESS) {
    *rejected = is_rejection(result);
    return driver.failure(
        result, format("cuKernelSetAttribute(max dynamic shared, {} bytes)", shared_bytes));
  }
  if (Status status = make_resident(where, rejected); !status) return status;

  const ContextScope scope(driver, where.context);
  if (scope.result() != CUDA_SUCCESS) return driver.failure(scope.result(), "cuCtxPushCurrent");
  int ctas_per_sm = 0;
  result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &ctas_per_sm, reinterpret_cast<CUfunction>(kernel), static_cast<int>(threads_per_cta),
      shared_bytes);
  if (result != CUDA_SUCCESS) {
    return driver.failure(result, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }
  if (ctas_per_sm < 1) {
    return Status(StatusCode::kUnsupported,
                  format("{}: a CTA of {} threads with {} bytes of shared memory does not fit on "
                         "an SM of this GPU",
                         parts.info.kernel_name, static_cast<int>(threads_per_cta), shared_bytes));
  }

  describe_device(where.info, ctas_per_sm);
  return {};
}

bool LoadedKernel::is_resident(const DeviceContext& where) const {
  std::lock_guard lock(mutex_);
  return is_resident_locked(where);
}

bool LoadedKernel::is_resident_locked(const DeviceContext& where) const {
  for (const DeviceContext& known : contexts_) {
    if (known.context == where.context && known.context_id == where.context_id) return true;
  }
  return false;
}

Status LoadedKernel::make_resident(const DeviceContext& where, bool* rejected) {
  std::lock_guard lock(mutex_);
  if (is_resident_locked(where)) return {};
  const Driver& driver = *parts.driver;
  const ContextScope scope(driver, where.context);
  if (scope.result() != CUDA_SUCCESS) return driver.failure(scope.result(), "cuCtxPushCurrent");
  CUfunction function = nullptr;
  CUresult result = driver.cuKernelGetFunction(&function, kernel);
  if (result != CUDA_SUCCESS) {
    *rejected = is_rejection(result);
    return driver.failure(result, "cuKernelGetFunction");
  }
  if (driver.cuFuncLoad != nullptr) {
    result = driver.cuFuncLoad(function);
    if (result != CUDA_SUCCESS) {
      *rejected = is_rejection(result);
      return driver.failure(result, "cuFuncLoad");
    }
  }
  contexts_.push_back(where);
  return {};
}

LoadedKernel::~LoadedKernel() {
  if (!launched.load(std::memory_order_acquire)) return;
  if (!parts.module->is_of_this_process()) return;
  const Driver& driver = *parts.driver;
  for (const DeviceContext& where : contexts_) {
    unsigned long long id = 0;
    CUresult result = driver.cuCtxGetId(where.context, &id);
    // A destroyed context has no work left; another one may have taken its address.
    if (is_teardown(result) || (result == CUDA_SUCCESS && id != where.context_id)) continue;
    if (result == CUDA_SUCCESS) {
      const ContextScope scope(driver, where.context);
      result = scope.result() == CUDA_SUCCESS ? driver.cuCtxSynchronize() : scope.result();
    }
    if (result != CUDA_SUCCESS && !is_teardown(result)) parts.module->abandon();
  }
}

Status LoadedKernel::launch(Grid grid, void* params, Stream stream) const {
  void* param_pointers[] = {params};
  CUlaunchConfig config{};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = threads_per_cta;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = shared_bytes;
  config.hStream = static_cast<CUstream>(stream);
  CUlaunchAttribute attribute;
  if (pdl) {
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }

  // Set before the launch; only written once, so that launching threads do not fight for the cache
  // line.
  if (!launched.load(std::memory_order_relaxed)) launched.store(true, std::memory_order_relaxed);
  // A CUkernel in place of a CUfunction: the driver takes the one of the current context.
  const CUresult result = parts.driver->cuLaunchKernelEx(
      &config, reinterpret_cast<CUfunction>(kernel), param_pointers, nullptr);
  return result == CUDA_SUCCESS ? Status() : launch_failure(*this, result);
}

}  // namespace pagejit
