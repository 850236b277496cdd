// The driver's functions. Those that pagejit's own code never calls only exist.
#include "tests/runtime/stub_driver/stub_driver.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/runtime/stub_driver/stub_state.h"

using pagejit_stub::Context;
using pagejit_stub::context_stack;
using pagejit_stub::Function;
using pagejit_stub::Library;
using pagejit_stub::State;
using pagejit_stub::state;

namespace {

Context* current() { return context_stack().empty() ? nullptr : context_stack().back(); }
Context* context_of(CUcontext context) { return reinterpret_cast<Context*>(context); }

// The functions, each with the name that the driver gives it.
namespace stub {

Function f_init("cuInit");
CUresult init(unsigned) { return f_init.enter(); }

Function f_version("cuDriverGetVersion");
CUresult version(int* out) {
  *out = state().version;
  return f_version.enter();
}

CUresult error_name(CUresult error, const char** out) {
  switch (error) {
    case CUDA_ERROR_INVALID_VALUE:
      *out = "CUDA_ERROR_INVALID_VALUE";
      return CUDA_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
      *out = "CUDA_ERROR_OUT_OF_MEMORY";
      return CUDA_SUCCESS;
    case CUDA_ERROR_NO_DEVICE:
      *out = "CUDA_ERROR_NO_DEVICE";
      return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_IMAGE:
      *out = "CUDA_ERROR_INVALID_IMAGE";
      return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *out = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return CUDA_SUCCESS;
    default:
      *out = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult error_string(CUresult error, const char** out) {
  *out = error == CUDA_ERROR_INVALID_VALUE ? "invalid argument" : nullptr;
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Function f_device_count("cuDeviceGetCount");
CUresult device_count(int* count) {
  *count = static_cast<int>(state().devices.size());
  return f_device_count.enter();
}

Function f_device_get("cuDeviceGet");
CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return f_device_get.enter();
}

Function f_device_name("cuDeviceGetName");
CUresult device_name(char* name, int, CUdevice) {
  std::strcpy(name, "Stub GPU");
  return f_device_name.enter();
}

Function f_device_attribute("cuDeviceGetAttribute");
CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const pagejit_stub::Device& d = state().devices.at(static_cast<size_t>(device));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = d.sm / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = d.sm % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = d.num_sms;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = d.memory_clock_khz;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = d.bus_bits;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = d.max_shared_bytes;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return f_device_attribute.enter();
}

Function f_retain("cuDevicePrimaryCtxRetain");
CUresult retain(CUcontext* out, CUdevice device) {
  if (CUresult result = f_retain.enter(); result != CUDA_SUCCESS) return result;
  State& s = state();
  std::lock_guard lock(s.mutex);
  Context*& primary = s.primaries[device];
  if (primary == nullptr) primary = pagejit_stub::new_context(device);
  ++s.primary_counts[device];
  *out = reinterpret_cast<CUcontext>(primary);
  return CUDA_SUCCESS;
}

Function f_release("cuDevicePrimaryCtxRelease");
CUresult release(CUdevice device) {
  std::lock_guard lock(state().mutex);
  --state().primary_counts[device];
  return f_release.enter();
}

Function f_get_current("cuCtxGetCurrent");
CUresult get_current(CUcontext* out) {
  *out = reinterpret_cast<CUcontext>(current());
  return f_get_current.enter();
}

Function f_set_current("cuCtxSetCurrent");
CUresult set_current(CUcontext context) {
  context_stack().clear();
  if (context != nullptr) context_stack().push_back(context_of(context));
  return f_set_current.enter();
}

Function f_push("cuCtxPushCurrent");
CUresult push(CUcontext context) {
  if (CUresult result = f_push.enter(); result != CUDA_SUCCESS) return result;
  context_stack().push_back(context_of(context));
  return CUDA_SUCCESS;
}

Function f_pop("cuCtxPopCurrent");
CUresult pop(CUcontext* out) {
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = reinterpret_cast<CUcontext>(current());
  context_stack().pop_back();
  return f_pop.enter();
}

Function f_ctx_device("cuCtxGetDevice");
CUresult ctx_device(CUdevice* out) {
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = current()->device;
  return f_ctx_device.enter();
}

Function f_ctx_id("cuCtxGetId");
CUresult ctx_id(CUcontext context, unsigned long long* out) {
  if (!context_of(context)->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *out = context_of(context)->id;
  return f_ctx_id.enter();
}

Function f_synchronize("cuCtxSynchronize");
CUresult synchronize() {
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (CUresult result = f_synchronize.enter(); result != CUDA_SUCCESS) return result;
  state().work_may_run = false;
  return CUDA_SUCCESS;
}

Function f_load("cuLibraryLoadData");
CUresult load(CUlibrary* out, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
              void**, unsigned) {
  if (CUresult result = f_load.enter(); result != CUDA_SUCCESS) return result;
  const char* image = static_cast<const char*>(code);
  if (std::strncmp(image, pagejit_stub::kRefusedImage, std::strlen(pagejit_stub::kRefusedImage)) ==
      0) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.libraries.push_back(std::make_unique<Library>());
  *out = reinterpret_cast<CUlibrary>(s.libraries.back().get());
  ++s.live_libraries;
  return CUDA_SUCCESS;
}

Function f_unload("cuLibraryUnload");
CUresult unload(CUlibrary library) {
  if (CUresult result = f_unload.enter(); result != CUDA_SUCCESS) return result;
  if (state().work_may_run) state().unloaded_under_work = true;
  if (!std::exchange(reinterpret_cast<Library*>(library)->alive, false)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  --state().live_libraries;
  return CUDA_SUCCESS;
}

Function f_get_kernel("cuLibraryGetKernel");
CUresult get_kernel(CUkernel* out, CUlibrary library, const char*) {
  *out = reinterpret_cast<CUkernel>(&reinterpret_cast<Library*>(library)->kernel);
  return f_get_kernel.enter();
}

Function f_get_function("cuKernelGetFunction");
CUresult get_function(CUfunction* out, CUkernel kernel) {
  *out = reinterpret_cast<CUfunction>(kernel);
  return f_get_function.enter();
}

Function f_set_attribute("cuKernelSetAttribute");
CUresult set_attribute(CUfunction_attribute, int value, CUkernel, CUdevice) {
  state().max_dynamic_shared = value;
  return f_set_attribute.enter();
}

Function f_func_load("cuFuncLoad");
CUresult func_load(CUfunction) { return f_func_load.enter(); }

Function f_occupancy("cuOccupancyMaxActiveBlocksPerMultiprocessor");
CUresult occupancy(int* out, CUfunction, int, size_t) {
  *out = state().occupancy;
  return f_occupancy.enter();
}

Function f_launch("cuLaunchKernelEx");
CUresult launch(const CUlaunchConfig* config, CUfunction kernel, void** params, void**) {
  if (CUresult result = f_launch.enter(); result != CUDA_SUCCESS) return result;
  State& s = state();
  while (s.launch_lock.test_and_set()) {
  }
  s.launch = {*config, config->numAttrs > 0 ? config->attrs[0] : CUlaunchAttribute{}, kernel, {}};
  std::memcpy(&s.launch.params, params[0], s.recorded_bytes);
  s.launch_lock.clear();
  s.work_may_run = true;
  return CUDA_SUCCESS;
}

void* memory(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

Function f_copy_out("cuMemcpyDtoHAsync");
CUresult copy_out(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  if (CUresult result = f_copy_out.enter(); result != CUDA_SUCCESS) return result;
  std::memcpy(to, memory(from), bytes);
  return CUDA_SUCCESS;
}

Function f_copy_in("cuMemcpyHtoDAsync");
CUresult copy_in(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  if (CUresult result = f_copy_in.enter(); result != CUDA_SUCCESS) return result;
  std::memcpy(memory(to), from, bytes);
  return CUDA_SUCCESS;
}

Function f_copy("cuMemcpyDtoDAsync");
CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  if (CUresult result = f_copy.enter(); result != CUDA_SUCCESS) return result;
  std::memcpy(memory(to), memory(from), bytes);
  return CUDA_SUCCESS;
}

// As of CUDA 12.8. Wants one set of attributes for all copies, whose first word says stream order.
Function f_copy_batch("cuMemcpyBatchAsync");
CUresult copy_batch(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                    const int* attributes, size_t* first_copy, size_t num_attributes,
                    size_t* failed, CUstream stream) {
  if (CUresult result = f_copy_batch.enter(); result != CUDA_SUCCESS) {
    *failed = count - 1;
    return result;
  }
  if (stream == nullptr || num_attributes != 1 || first_copy[0] != 0 || attributes[0] != 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) std::memcpy(memory(to[i]), memory(from[i]), bytes[i]);
  return CUDA_SUCCESS;
}

Function f_set8("cuMemsetD8Async");
CUresult set8(CUdeviceptr address, unsigned char value, size_t count, CUstream) {
  if (CUresult result = f_set8.enter(); result != CUDA_SUCCESS) return result;
  std::memset(memory(address), value, count);
  return CUDA_SUCCESS;
}

Function f_set32("cuMemsetD32Async");
CUresult set32(CUdeviceptr address, unsigned value, size_t count, CUstream) {
  if (CUresult result = f_set32.enter(); result != CUDA_SUCCESS) return result;
  auto* words = static_cast<unsigned*>(memory(address));
  for (size_t i = 0; i < count; ++i) words[i] = value;
  return CUDA_SUCCESS;
}

Function f_stream_synchronize("cuStreamSynchronize");
CUresult stream_synchronize(CUstream) { return f_stream_synchronize.enter(); }

Function f_is_capturing("cuStreamIsCapturing");
CUresult is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  if (CUresult result = f_is_capturing.enter(); result != CUDA_SUCCESS) return result;
  *status = state().capturing_stream == stream ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                               : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

Function f_exchange("cuThreadExchangeStreamCaptureMode");
CUresult exchange(CUstreamCaptureMode*) { return f_exchange.enter(); }

// Functions that only must be there.
CUresult unused() { return CUDA_ERROR_NOT_SUPPORTED; }
Function f_error_name("cuGetErrorName"), f_error_string("cuGetErrorString"),
    f_total_mem("cuDeviceTotalMem"), f_get_attribute("cuKernelGetAttribute"), f_alloc("cuMemAlloc"),
    f_free("cuMemFree"), f_mem_info("cuMemGetInfo"), f_htod("cuMemcpyHtoD"), f_dtoh("cuMemcpyDtoH"),
    f_stream_create("cuStreamCreate"), f_stream_destroy("cuStreamDestroy"),
    f_begin("cuStreamBeginCapture"), f_end("cuStreamEndCapture"), f_event_create("cuEventCreate"),
    f_event_destroy("cuEventDestroy"), f_event_record("cuEventRecord"),
    f_event_sync("cuEventSynchronize"), f_elapsed("cuEventElapsedTime"),
    f_instantiate("cuGraphInstantiateWithFlags"), f_graph_launch("cuGraphLaunch"),
    f_exec_destroy("cuGraphExecDestroy"), f_graph_destroy("cuGraphDestroy");

template <class Pointer>
void* address(Pointer pointer) {
  return reinterpret_cast<void*>(pointer);
}

const std::map<std::string, void*>& table() {
  static const std::map<std::string, void*> functions = {
      {"cuInit", address(init)},
      {"cuDriverGetVersion", address(version)},
      {"cuGetErrorName", address(error_name)},
      {"cuGetErrorString", address(error_string)},
      {"cuDeviceGetCount", address(device_count)},
      {"cuDeviceGet", address(device_get)},
      {"cuDeviceGetName", address(device_name)},
      {"cuDeviceGetAttribute", address(device_attribute)},
      {"cuDevicePrimaryCtxRetain", address(retain)},
      {"cuDevicePrimaryCtxRelease", address(release)},
      {"cuCtxGetCurrent", address(get_current)},
      {"cuCtxSetCurrent", address(set_current)},
      {"cuCtxPushCurrent", address(push)},
      {"cuCtxPopCurrent", address(pop)},
      {"cuCtxGetDevice", address(ctx_device)},
      {"cuCtxGetId", address(ctx_id)},
      {"cuCtxSynchronize", address(synchronize)},
      {"cuLibraryLoadData", address(load)},
      {"cuLibraryUnload", address(unload)},
      {"cuLibraryGetKernel", address(get_kernel)},
      {"cuKernelGetFunction", address(get_function)},
      {"cuKernelSetAttribute", address(set_attribute)},
      {"cuFuncLoad", address(func_load)},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor", address(occupancy)},
      {"cuLaunchKernelEx", address(launch)},
      {"cuMemcpyDtoHAsync", address(copy_out)},
      {"cuMemcpyHtoDAsync", address(copy_in)},
      {"cuMemcpyDtoDAsync", address(copy)},
      {"cuMemcpyBatchAsync", address(copy_batch)},
      {"cuMemsetD8Async", address(set8)},
      {"cuMemsetD32Async", address(set32)},
      {"cuStreamSynchronize", address(stream_synchronize)},
      {"cuStreamIsCapturing", address(is_capturing)},
      {"cuThreadExchangeStreamCaptureMode", address(exchange)},
  };
  return functions;
}

}  // namespace stub
}  // namespace

PAGEJIT_STUB_EXPORT CUresult cuDriverGetVersion(int* out) { return stub::version(out); }

PAGEJIT_STUB_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** out, int cuda_version,
                                                 cuuint64_t,
                                                 CUdriverProcAddressQueryResult* status) {
  *out = nullptr;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  Function* known = nullptr;
  for (Function* function : Function::all()) {
    if (std::strcmp(function->name(), symbol) == 0) known = function;
  }
  if (known == nullptr || known->removed()) return CUDA_ERROR_NOT_FOUND;
  if (std::strcmp(symbol, "cuFuncLoad") == 0 && (cuda_version < 12040 || state().version < 12040)) {
    return CUDA_ERROR_NOT_FOUND;
  }
  if (std::strcmp(symbol, "cuMemcpyBatchAsync") == 0 &&
      (cuda_version < 12080 || state().version < 12080)) {
    return CUDA_ERROR_NOT_FOUND;
  }
  const auto found = stub::table().find(symbol);
  *out = found != stub::table().end() ? found->second : stub::address(stub::unused);
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
