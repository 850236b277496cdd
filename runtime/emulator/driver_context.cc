// The driver API on contexts. Each thread has a stack of current contexts.
#include <vector>

#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {
namespace {

thread_local std::vector<Context*> context_stack;

}  // namespace

Context* current_context() { return context_stack.empty() ? nullptr : context_stack.back(); }

bool is_context(const Context* context) {
  const DriverState& state = driver_state();
  if (context == &state.primary) return state.primary_retains > 0;
  return state.contexts.contains(const_cast<Context*>(context));
}

PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  DriverState& state = driver_state();
  // A primary context that was released and is retained anew is another one.
  if (state.primary_retains++ == 0) state.primary.id = state.next_context_id++;
  *context = &state.primary;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  DriverState& state = driver_state();
  if (state.primary_retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --state.primary_retains;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags,
                                                         int* active) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *flags = driver_state().primary_flags;
  *active = driver_state().primary_retains > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  driver_state().primary_flags = flags;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  DriverState& state = driver_state();
  auto created = std::make_unique<Context>();
  created->id = state.next_context_id++;
  *context = created.get();
  context_stack.push_back(created.get());
  state.contexts.emplace(*context, std::move(created));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxCreate_v4(CUcontext* context, void*, unsigned flags,
                                             CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

PAGEJIT_EMULATOR_API CUresult cuCtxDestroy_v2(CUcontext context) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (driver_state().contexts.erase(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (current_context() == context) context_stack.pop_back();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxGetCurrent(CUcontext* context) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = current_context();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxSetCurrent(CUcontext context) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (context != nullptr && !is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context_stack.empty()) context_stack.pop_back();
  if (context != nullptr) context_stack.push_back(context);
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack.push_back(context);
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (context_stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = context_stack.back();
  context_stack.pop_back();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxGetDevice(CUdevice* device) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) context = current_context();
  if (context == nullptr || !is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuCtxSynchronize() {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return forbid_during_capture();
}

}  // namespace pagejit_emulator
