#include "runtime/engine/loaded_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pagejit {
namespace {

// Memory latency under load; with the bytes a CTA has in flight it bounds what one CTA can stream.
constexpr double kLatencyNs = 1000;

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
    return api.failure(result, fmt::format("cuLibraryGetKernel(\"{}\")", symbol));
  }
  return module;
}

LoadedModule::~LoadedModule() {
  if (library_ == nullptr || abandoned_.load(std::memory_order_relaxed)) return;
  driver_->cuLibraryUnload(library_);  // fails where the driver is shut down: nothing is left then
}

LoadedKernel::LoadedKernel(LoadedKernelParts loaded_parts, CUdevice on_device)
    : parts(std::move(loaded_parts)), kernel(parts.module->kernel()), device(on_device) {}

Result<std::shared_ptr<LoadedKernel>> LoadedKernel::create(LoadedKernelParts parts,
                                                           const DeviceContext& where,
                                                           bool* rejected) {
  std::shared_ptr<LoadedKernel> loaded(new LoadedKernel(std::move(parts), where.info.device));
  if (Status status = loaded->set_up(where, rejected); !status) return status;
  return loaded;
}

Status LoadedKernel::set_up(const DeviceContext& where, bool* rejected) {
  const Driver& driver = *parts.driver;
  const KernelConfig& config = parts.config;
  CUresult result =
      driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  config.attention.shared_bytes, kernel, where.info.device);
  if (result != CUDA_SUCCESS) {
    *rejected = is_rejection(result);
    return driver.failure(result, fmt::format("cuKernelSetAttribute(max dynamic shared, {} bytes)",
                                              config.attention.shared_bytes));
  }
  if (Status status = make_resident(where, rejected); !status) return status;

  const ContextScope scope(driver, where.context);
  if (scope.result() != CUDA_SUCCESS) return driver.failure(scope.result(), "cuCtxPushCurrent");
  int ctas_per_sm = 0;
  result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &ctas_per_sm, reinterpret_cast<CUfunction>(kernel), config.threads_per_cta(),
      static_cast<size_t>(config.attention.shared_bytes));
  if (result != CUDA_SUCCESS) {
    return driver.failure(result, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }
  if (ctas_per_sm < 1) {
    return Status(
        StatusCode::kUnsupported,
        fmt::format("{}: a CTA of {} threads with {} bytes of shared memory does not fit on "
                    "an SM of this GPU",
                    parts.info.kernel_name, config.threads_per_cta(),
                    config.attention.shared_bytes));
  }

  const int element_bytes = data_type_bytes(config.spec.kv_dtype);
  split.num_sms = std::max(1, where.info.num_sms);
  split.ctas_per_sm = ctas_per_sm;
  if (where.info.bytes_per_ns > 0) split.sm_bytes_per_ns = where.info.bytes_per_ns / split.num_sms;
  split.rows = pagejit_shared::partial_rows(config.attention);
  split.head_size = config.spec.head_size;
  split.tile_tokens = config.tile_tokens();
  split.token_bytes = 2 * config.spec.head_size * element_bytes;
  // All stages but the one being computed on are in flight.
  const int stages = std::max(1, config.attention.num_stages - 1);
  split.cta_bytes_per_ns =
      static_cast<double>(stages) * split.tile_tokens * split.token_bytes / kLatencyNs;
  return {};
}

Status LoadedKernel::make_resident(const DeviceContext& where, bool* rejected) {
  std::lock_guard lock(mutex_);
  for (const DeviceContext& known : contexts_) {
    if (known.context == where.context && known.context_id == where.context_id) return {};
  }
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

size_t LoadedKernel::workspace_bytes(int num_seqs, int num_kv_heads, int num_splits) const {
  if (num_splits <= 1) {
    return parts.config.spec.debug ? static_cast<size_t>(pagejit_shared::kPartialsOffset) : 0;
  }
  return static_cast<size_t>(pagejit_shared::workspace_bytes(num_seqs, num_kv_heads, num_splits,
                                                             split.rows, split.head_size));
}

}  // namespace pagejit
