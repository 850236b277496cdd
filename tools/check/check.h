// run_check: one kernel on random data against the float64 reference, on a GPU or on the emulator
// alike. What `pagejit check`, the demo and the sweeps call. Thread-safety: may be called from
// several threads; each call allocates its own device memory.
#pragma once

#include "pagejit/engine.h"
#include "tools/check/compare.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct CheckOptions {
  // The data. `spec` is overwritten by run_check's; no seq_lens = default_seq_lens().
  BatchOptions batch;
  int num_splits = 0;  // as AttentionArgs; 0 = chosen by the library
  bool with_lse = true;
};

// Lengths at the borders of blocks, and such as take several tiles: 0, 1, block_size - 1,
// block_size, block_size + 1, 600, 2049.
std::vector<int> default_seq_lens(int block_size);

// Prepares the kernel in the session's context, launches once, and compares. The session must use
// the engine's driver. A status where something failed to run; a report with passed = false where
// it ran and was wrong.
Result<CheckReport> run_check(Engine& engine, const DeviceSession& session, const KernelSpec& spec,
                              const CheckOptions& options);

// The same in a session of its own, on device 0 of the driver that the environment names
// (EngineOptions::from_environment()).
Result<CheckReport> run_check(Engine& engine, const KernelSpec& spec, const CheckOptions& options);

}  // namespace pagejit
