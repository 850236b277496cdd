// The stub driver: a library with the CUDA driver functions that pagejit uses, scripted by tests:
// devices, versions, missing functions, failures; it counts calls and records launches. "Device
// memory" is host memory, nothing is computed. Compiled twice: as a CUDA driver, and with the
// marker of pagejit's emulator. Thread-safety: the driver functions may be called from any thread;
// the script is changed while no call is under way.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "templates/shared/attention_params.h"

namespace pagejit_stub {

struct Device {
  int sm = 90;
  int num_sms = 132;
  int memory_clock_khz = 0;
  int bus_bits = 0;
  int max_shared_bytes = 0;
};

// The last launch.
struct LaunchRecord {
  CUlaunchConfig config{};        // attrs is gone after the call
  CUlaunchAttribute attribute{};  // the first of them, where there is one
  void* kernel = nullptr;
  pagejit_shared::AttentionParams params{};
};

// What tests set and ask.
class Script {
 public:
  virtual ~Script() = default;

  // Everything as at load: one GPU of compute capability 9.0, driver 12.4, nothing fails, all
  // counters zero.
  virtual void reset() = 0;
  virtual void set_driver_version(int version) = 0;
  virtual void set_devices(const Device* devices, int count) = 0;

  // From now on calls of `function` ("cuLibraryLoadData") return `result`; `times` < 0 = all of
  // them.
  virtual void fail(const char* function, CUresult result, int times = -1) = 0;
  // cuGetProcAddress no longer finds it.
  virtual void remove(const char* function) = 0;
  virtual uint64_t calls(const char* function) = 0;
  // Calls of all functions.
  virtual uint64_t total_calls() = 0;

  virtual LaunchRecord last_launch() = 0;
  // How many bytes of a launch's parameters are recorded, at first those of attention: no more than
  // its kernel has.
  virtual void record_params(size_t bytes) = 0;
  virtual int live_libraries() = 0;
  virtual int live_primary_contexts() = 0;
  // Whether there was a launch since the last cuCtxSynchronize.
  virtual bool work_may_run() = 0;
  // Whether a library was unloaded while work could run.
  virtual bool unloaded_under_work() = 0;
  virtual int max_dynamic_shared() = 0;  // as last set
  virtual void set_occupancy(int ctas_per_sm) = 0;

  // The one stream that is being captured; null = none.
  virtual void set_capturing_stream(CUstream stream) = 0;

  virtual CUcontext make_context(int device) = 0;
  virtual void destroy_context(CUcontext context) = 0;
};

// Images that begin so are refused by cuLibraryLoadData.
constexpr const char* kRefusedImage = "REFUSED";

}  // namespace pagejit_stub

// Found by dlsym in the opened library.
extern "C" pagejit_stub::Script* pagejit_stub_script();
