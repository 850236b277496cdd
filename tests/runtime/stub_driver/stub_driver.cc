#include "tests/runtime/stub_driver/stub_driver.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pagejit_stub {
namespace {

// One function of the driver: its script and its count. Nothing here allocates or locks once made,
// so that tests can measure the caller.
class Function {
 public:
  explicit Function(const char* name) : name_(name) { all().push_back(this); }

  // What the call must return; CUDA_SUCCESS = do the work.
  CUresult enter() {
    calls_.fetch_add(1);
    const int left = failures_.load();
    if (left == 0) return CUDA_SUCCESS;
    if (left > 0) failures_.fetch_sub(1);
    return static_cast<CUresult>(result_.load());
  }

  void reset() {
    calls_ = 0;
    failures_ = 0;
    removed_ = false;
  }
  void fail(CUresult result, int times) {
    result_ = result;
    failures_ = times;
  }
  void remove() { removed_ = true; }
  bool removed() const { return removed_; }
  uint64_t calls() const { return calls_; }
  const char* name() const { return name_; }

  static std::vector<Function*>& all() {
    static std::vector<Function*> functions;
    return functions;
  }
  static Function* find(const char* name) {
    for (Function* function : all()) {
      if (std::strcmp(function->name(), name) == 0) return function;
    }
    std::abort();  // a test names a function that the stub does not have
  }

 private:
  const char* name_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<int> failures_{0};
  std::atomic<int> result_{0};
  std::atomic<bool> removed_{false};
};

struct Context {
  int device = 0;
  unsigned long long id = 0;
  bool alive = true;
};

struct Library {
  int kernel = 0;  // its address is the CUkernel
};

struct State {
  std::mutex mutex;
  int version = 12040;
  int occupancy = 2;
  std::vector<Device> devices{Device{}};
  std::vector<std::unique_ptr<Context>>
      contexts;  // never freed, so that stale handles stay readable
  std::map<int, Context*> primaries;
  std::map<int, int> primary_counts;
  unsigned long long next_context_id = 1;
  std::atomic<int> live_libraries{0};
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<bool> work_may_run{false};
  std::atomic<bool> unloaded_under_work{false};
  std::atomic_flag launch_lock;
  LaunchRecord launch;
};

State& state() {
  static State instance;
  return instance;
}

std::vector<Context*>& context_stack() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

Context* new_context(int device) {
  State& s = state();
  s.contexts.push_back(std::make_unique<Context>());
  Context* context = s.contexts.back().get();
  context->device = device;
  context->id = s.next_context_id++;
  return context;
}

class ScriptImpl final : public Script {
 public:
  void reset() override {
    State& s = state();
    std::lock_guard lock(s.mutex);
    for (Function* function : Function::all()) function->reset();
    s.version = 12040;
    s.occupancy = 2;
    s.devices = {Device{}};
    s.primaries.clear();
    s.primary_counts.clear();
    s.live_libraries = 0;
    s.work_may_run = false;
    s.unloaded_under_work = false;
    s.launch = {};
    context_stack().clear();
  }
  void set_driver_version(int version) override { state().version = version; }
  void set_devices(const Device* devices, int count) override {
    state().devices.assign(devices, devices + count);
  }
  void fail(const char* function, CUresult result, int times) override {
    Function::find(function)->fail(result, times);
  }
  void remove(const char* function) override { Function::find(function)->remove(); }
  uint64_t calls(const char* function) override { return Function::find(function)->calls(); }
  uint64_t total_calls() override {
    uint64_t total = 0;
    for (Function* function : Function::all()) total += function->calls();
    return total;
  }
  LaunchRecord last_launch() override { return state().launch; }
  int live_libraries() override { return state().live_libraries; }
  int live_primary_contexts() override {
    int live = 0;
    for (auto [device, count] : state().primary_counts) live += count;
    return live;
  }
  bool work_may_run() override { return state().work_may_run; }
  bool unloaded_under_work() override { return state().unloaded_under_work; }
  int max_dynamic_shared() override { return state().max_dynamic_shared; }
  void set_occupancy(int ctas_per_sm) override { state().occupancy = ctas_per_sm; }
  CUcontext make_context(int device) override {
    std::lock_guard lock(state().mutex);
    return reinterpret_cast<CUcontext>(new_context(device));
  }
  void destroy_context(CUcontext context) override {
    reinterpret_cast<Context*>(context)->alive = false;
  }
};

}  // namespace
}  // namespace pagejit_stub

using pagejit_stub::Context;
using pagejit_stub::context_stack;
using pagejit_stub::Function;
using pagejit_stub::Library;
using pagejit_stub::State;
using pagejit_stub::state;

#define PAGEJIT_STUB_EXPORT extern "C" __attribute__((visibility("default")))

PAGEJIT_STUB_EXPORT pagejit_stub::Script* pagejit_stub_script() {
  static pagejit_stub::ScriptImpl script;
  return &script;
}

#ifdef PAGEJIT_STUB_IS_EMULATOR
PAGEJIT_STUB_EXPORT int pagejit_emulator_abi() { return 1; }
PAGEJIT_STUB_EXPORT const char* pagejit_emulator_last_report() { return "stub report"; }
#endif

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
  *out = reinterpret_cast<CUlibrary>(new Library);
  ++state().live_libraries;
  return CUDA_SUCCESS;
}

Function f_unload("cuLibraryUnload");
CUresult unload(CUlibrary library) {
  if (CUresult result = f_unload.enter(); result != CUDA_SUCCESS) return result;
  if (state().work_may_run) state().unloaded_under_work = true;
  delete reinterpret_cast<Library*>(library);
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
  s.launch = {*config, kernel, *static_cast<pagejit_shared::DecodeParams*>(params[0])};
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

Function f_exchange("cuThreadExchangeStreamCaptureMode");
CUresult exchange(CUstreamCaptureMode*) { return f_exchange.enter(); }

// Functions that only must be there.
CUresult unused() { return CUDA_ERROR_NOT_SUPPORTED; }
Function f_error_name("cuGetErrorName"), f_error_string("cuGetErrorString"),
    f_device_name("cuDeviceGetName"), f_total_mem("cuDeviceTotalMem"),
    f_get_attribute("cuKernelGetAttribute"), f_alloc("cuMemAlloc"), f_free("cuMemFree"),
    f_mem_info("cuMemGetInfo"), f_htod("cuMemcpyHtoD"), f_dtoh("cuMemcpyDtoH"),
    f_htod_async("cuMemcpyHtoDAsync"), f_dtod_async("cuMemcpyDtoDAsync"),
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
      {"cuMemsetD8Async", address(set8)},
      {"cuMemsetD32Async", address(set32)},
      {"cuStreamSynchronize", address(stream_synchronize)},
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
  const auto found = stub::table().find(symbol);
  *out = found != stub::table().end() ? found->second : stub::address(stub::unused);
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
