#include <algorithm>
#include <mutex>

#include "tests/runtime/stub_driver/stub_driver.h"
#include "tests/runtime/stub_driver/stub_state.h"

namespace pagejit_stub {
namespace {

class ScriptImpl final : public Script {
 public:
  void reset() override {
    State& s = state();
    std::lock_guard lock(s.mutex);
    for (Function* function : Function::all()) function->reset();
    s.version = 12040;
    s.occupancy = 2;
    s.recorded_bytes = sizeof(pagejit_shared::AttentionParams);
    s.devices = {Device{}};
    s.primaries.clear();
    s.primary_counts.clear();
    s.live_libraries = 0;
    s.work_may_run = false;
    s.unloaded_under_work = false;
    s.capturing_stream = nullptr;
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
  void record_params(size_t bytes) override {
    state().recorded_bytes = std::min(bytes, sizeof(pagejit_shared::AttentionParams));
  }
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
  void set_capturing_stream(CUstream stream) override { state().capturing_stream = stream; }
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

PAGEJIT_STUB_EXPORT pagejit_stub::Script* pagejit_stub_script() {
  static pagejit_stub::ScriptImpl script;
  return &script;
}

#ifdef PAGEJIT_STUB_IS_EMULATOR
PAGEJIT_STUB_EXPORT int pagejit_emulator_abi() { return 1; }
PAGEJIT_STUB_EXPORT const char* pagejit_emulator_last_report() { return "stub report"; }
#endif
