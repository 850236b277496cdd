#include "runtime/emulator/emulator.h"

#include <algorithm>
#include <vector>

#include "runtime/emulator/driver_state.h"

using pagejit_emulator::driver_state;
using pagejit_emulator::DriverState;
using pagejit_emulator::Guard;

PAGEJIT_EMULATOR_API int pagejit_emulator_abi(void) { return pagejit_emulator::kEmulatorAbi; }

PAGEJIT_EMULATOR_API void pagejit_emulator_options(PagejitEmulatorOptions* options) {
  const Guard guard(Guard::kNothing);
  pagejit_emulator::copy_fields(driver_state().options.values, sizeof(*options), options,
                                options->struct_size);
}

PAGEJIT_EMULATOR_API int pagejit_emulator_configure(const PagejitEmulatorOptions* options) {
  const Guard guard(Guard::kNothing);
  DriverState& state = driver_state();
  PagejitEmulatorOptions changed = state.options.values;
  pagejit_emulator::copy_fields(*options, options->struct_size, &changed, sizeof(changed));
  if (!pagejit_emulator::valid(changed)) return pagejit_emulator::CUDA_ERROR_INVALID_VALUE;
  state.options.values = changed;
  return 0;
}

PAGEJIT_EMULATOR_API void pagejit_emulator_counters(PagejitEmulatorCounters* counters) {
  const Guard guard(Guard::kNothing);
  pagejit_emulator::copy_fields(driver_state().counters, sizeof(*counters), counters,
                                counters->struct_size);
}

PAGEJIT_EMULATOR_API void pagejit_emulator_reset_counters(void) {
  const Guard guard(Guard::kNothing);
  driver_state().counters = {};
}

PAGEJIT_EMULATOR_API uint64_t pagejit_emulator_cta_bytes_read(uint64_t* bytes, uint64_t count) {
  const Guard guard(Guard::kNothing);
  const std::vector<uint64_t>& of_ctas = driver_state().machine.cta_bytes_read();
  std::copy_n(of_ctas.begin(), std::min<uint64_t>(count, of_ctas.size()), bytes);
  return of_ctas.size();
}

PAGEJIT_EMULATOR_API const char* pagejit_emulator_last_report(void) {
  thread_local std::string report;
  const Guard guard(Guard::kNothing);
  report = driver_state().last_report;
  return report.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer): lives as the thread
}
