#include "runtime/emulator/driver_state.h"

#include <cstdio>

#include "runtime/emulator/text.h"

namespace pagejit_emulator {

DriverState::DriverState() : machine(&memory, &counters) {
  std::string complaint;
  options = options_from_environment(&complaint);
  primary.is_primary = true;
  if (!complaint.empty()) last_report = "environment: " + complaint;
}

DriverState& driver_state() {
  // Never destroyed: other libraries may still release their handles while the process ends.
  static auto* const state = new DriverState;
  return *state;
}

Guard::Guard(Need need) : lock_(driver_state().mutex) {
  const DriverState& state = driver_state();
  if (need == kNothing) return;
  if (!state.initialised) {
    error_ = CUDA_ERROR_NOT_INITIALIZED;
  } else if (need == kContext && current_context() == nullptr) {
    error_ = CUDA_ERROR_INVALID_CONTEXT;
  } else if (need == kContext && !is_context(current_context())) {
    error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
}

const DeviceLimits& device_limits() {
  return *find_device_limits(driver_state().options.values.sm);
}

CUresult reported(CUresult code, const std::string& report) {
  DriverState& state = driver_state();
  state.last_report = report;
  const std::string& path = state.options.report_path;
  if (path.empty()) return code;
  std::FILE* file = path == "stderr" ? stderr : std::fopen(path.c_str(), "a");
  if (file == nullptr) return code;
  std::fprintf(file, "%s\n", report.c_str());  // layering: the report file that was asked for
  if (file == stderr) {
    std::fflush(file);
  } else {
    std::fclose(file);
  }
  return code;
}

}  // namespace pagejit_emulator
