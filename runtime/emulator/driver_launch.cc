// The driver API on launches. A launch runs at once, on the calling thread; its failure is the
// launch call's result.
#include <cstring>
#include <vector>

#include "runtime/emulator/driver_state.h"
#include "runtime/emulator/text.h"

namespace pagejit_emulator {
namespace {

CUresult check_launch(const CUlaunchConfig& c, const Function* function) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto refuse = [&](const std::string& reason) {
    return reported(CUDA_ERROR_INVALID_VALUE,
                    text("launch of %s: ", function->kernel->name) + reason);
  };
  if (c.gridDimX == 0 || c.gridDimY == 0 || c.gridDimZ == 0 || c.gridDimX > kMaxGridX ||
      c.gridDimY > kMaxGridYZ || c.gridDimZ > kMaxGridYZ) {
    return refuse(text("grid %u x %u x %u: each must be at least 1, x at most %d, y and z %d",
                       c.gridDimX, c.gridDimY, c.gridDimZ, kMaxGridX, kMaxGridYZ));
  }
  const auto limit = static_cast<unsigned>(function->kernel->num_threads);
  if (c.blockDimY != 1 || c.blockDimZ != 1 || c.blockDimX == 0 || c.blockDimX > limit ||
      c.blockDimX % kWarpSize != 0) {
    return refuse(
        text("%u x %u x %u threads per CTA: must be one-dimensional, a multiple of 32, at "
             "most the %u that the kernel was compiled for",
             c.blockDimX, c.blockDimY, c.blockDimZ, limit));
  }
  if (c.sharedMemBytes > static_cast<unsigned>(function->max_dynamic_shared)) {
    return refuse(
        text("%u bytes of dynamic shared memory: the kernel may use %d (raised with "
             "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES up to %d)",
             c.sharedMemBytes, function->max_dynamic_shared, device_limits().shared_optin));
  }
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    if (c.attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      return refuse(
          text("launch attribute %d: only %d (programmatic stream serialization) is known",
               c.attrs[i].id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
    }
  }
  return CUDA_SUCCESS;
}

bool is_pdl(const CUlaunchConfig& c) {
  bool allowed = false;
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    allowed = c.attrs[i].value.programmaticStreamSerializationAllowed != 0;
  }
  return allowed;
}

CUresult run(const CUlaunchConfig& config, const Image& image, const KernelEntry& kernel,
             const void* params, bool pdl) {
  DriverState& state = driver_state();
  const LaunchRequest request = {
      .image = &image,
      .kernel = &kernel,
      .grid = {static_cast<int>(config.gridDimX), static_cast<int>(config.gridDimY),
               static_cast<int>(config.gridDimZ)},
      .num_threads = static_cast<int>(config.blockDimX),
      .shared_bytes = config.sharedMemBytes,
      .params = params,
      .pdl = pdl,
  };
  const PagejitEmulatorOptions options = state.options.values;
  const std::optional<Fault> fault = state.machine.run(request, options);
  return fault ? reported(fault->code, fault->report) : CUDA_SUCCESS;
}

}  // namespace

PAGEJIT_EMULATOR_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                               void** params, void** extra) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (config == nullptr || params == nullptr || params[0] == nullptr || extra != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Function* known = find_function(function);
  if (CUresult error = check_launch(*config, known); error != CUDA_SUCCESS) return error;
  // As the driver does: the parameters are copied in the call.
  std::vector<unsigned char> copy(known->kernel->params_bytes);
  std::memcpy(copy.data(), params[0], copy.size());
  return enqueue(config->hStream, [config = *config, image = known->image, kernel = known->kernel,
                                   copy = std::move(copy), pdl = is_pdl(*config)] {
    return run(config, *image, *kernel, copy.data(), pdl);  // config.attrs is gone by now
  });
}

PAGEJIT_EMULATOR_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                             unsigned grid_z, unsigned threads_x,
                                             unsigned threads_y, unsigned threads_z,
                                             unsigned shared_bytes, CUstream stream, void** params,
                                             void** extra) {
  const CUlaunchConfig config = {grid_x,    grid_y,       grid_z, threads_x, threads_y,
                                 threads_z, shared_bytes, stream, nullptr,   0};
  return cuLaunchKernelEx(&config, function, params, extra);
}

}  // namespace pagejit_emulator
