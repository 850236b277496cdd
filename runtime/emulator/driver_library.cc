// The driver API on libraries and kernels. An image is the shared object that the host compiler
// made.
#include <algorithm>

#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

CUresult get_attribute(int* value, int attribute, const Function& function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function.kernel->num_threads;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.max_dynamic_shared;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = device_limits().sm;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;  // the default
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *value = 0;
      break;  // host code has none of these
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(int attribute, int value, Function* function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value > device_limits().shared_optin) return CUDA_ERROR_INVALID_VALUE;
      function->max_dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

Function* find_function(CUfunction function) {
  for (const auto& [handle, library] : driver_state().libraries) {
    for (const auto& [name, known] : library->functions) {
      if (known.get() == function) return function;
    }
  }
  return nullptr;
}

PAGEJIT_EMULATOR_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, void*, void**,
                                                unsigned, void*, void**, unsigned) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool is_elf = false;
  std::string complaint;
  std::shared_ptr<Image> image = Image::load(code, device_api(), &is_elf, &complaint);
  if (image == nullptr) {
    return reported(is_elf ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE, complaint);
  }
  auto loaded = std::make_unique<Library>();
  loaded->image = std::move(image);
  *library = loaded.get();
  driver_state().libraries.emplace(*library, std::move(loaded));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuLibraryUnload(CUlibrary library) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  // Graphs that hold a kernel of it keep the code.
  return driver_state().libraries.erase(library) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PAGEJIT_EMULATOR_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library,
                                                 const char* name) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto it = driver_state().libraries.find(library);
  if (it == driver_state().libraries.end()) return CUDA_ERROR_INVALID_HANDLE;
  const KernelEntry* entry = library->image->kernel(name);
  if (entry == nullptr) return CUDA_ERROR_NOT_FOUND;
  std::unique_ptr<Function>& function = library->functions[name];
  if (function == nullptr) {
    function = std::make_unique<Function>();
    function->image = library->image;
    function->kernel = entry;
  }
  *kernel = function.get();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find_function(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *function = kernel;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuKernelGetAttribute(int* value, int attribute, CUkernel kernel,
                                                   CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  const Function* function = find_function(kernel);
  return function != nullptr ? get_attribute(value, attribute, *function)
                             : CUDA_ERROR_INVALID_HANDLE;
}

PAGEJIT_EMULATOR_API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel,
                                                   CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  Function* function = find_function(kernel);
  return function != nullptr ? set_attribute(attribute, value, function)
                             : CUDA_ERROR_INVALID_HANDLE;
}

PAGEJIT_EMULATOR_API CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Function* function = find_function(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->kernel->name;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
  return cuKernelGetAttribute(value, attribute, function, 0);
}

PAGEJIT_EMULATOR_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  return cuKernelSetAttribute(attribute, value, function, 0);
}

PAGEJIT_EMULATOR_API CUresult cuFuncGetName(const char** name, CUfunction function) {
  return cuKernelGetName(name, function);
}

PAGEJIT_EMULATOR_API CUresult cuFuncLoad(CUfunction function) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return find_function(function) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// By threads, shared memory and slots: host code tells nothing of registers.
PAGEJIT_EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_ctas,
                                                                          CUfunction function,
                                                                          int num_threads,
                                                                          size_t dynamic_shared) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (num_ctas == nullptr || num_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Function* known = find_function(function);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const DeviceLimits& limits = device_limits();
  *num_ctas = 0;
  if (num_threads > known->kernel->num_threads ||
      dynamic_shared > static_cast<size_t>(known->max_dynamic_shared)) {
    return CUDA_SUCCESS;
  }
  const int warps = (num_threads + kWarpSize - 1) / kWarpSize;
  const size_t shared = dynamic_shared + (limits.sm >= 80 ? kSharedReservedPerCta : 0);
  *num_ctas = std::min(limits.threads_per_sm / (warps * kWarpSize), limits.ctas_per_sm);
  if (shared > 0) {
    *num_ctas =
        std::min(*num_ctas, static_cast<int>(static_cast<size_t>(limits.shared_per_sm) / shared));
  }
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* num_ctas, CUfunction function, int num_threads, size_t dynamic_shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(num_ctas, function, num_threads,
                                                     dynamic_shared);
}

}  // namespace pagejit_emulator
