// How many CTAs of a kernel an SM holds at once, by the rules that CUDA's occupancy calculator
// follows. Not how fast they are. Thread-safety: plain values and free functions.
//
// Sources: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability"
// (limits) and "Hardware Multithreading"; cuda_occupancy.h of CUDA 13.0 (granularities, barriers).
#pragma once

#include <limits>
#include <string>

#include "pagejit/status.h"

namespace pagejit::inspect {

// Of one kernel, as it is launched.
struct CtaResources {
  int threads = 0;
  int registers = 0;     // per thread
  int shared_bytes = 0;  // static and dynamic
  int barriers = 1;      // of bar.sync
};

struct Occupancy {
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  int ctas = 0;       // per SM; 0: the kernel cannot be launched there
  int warps = 0;      // of these CTAs
  int max_warps = 0;  // that an SM can hold
  // What each resource alone would let in; kUnlimited where the kernel takes nothing of it, or
  // nothing limits it.
  int by_registers = 0;
  int by_shared = 0;
  int by_warps = 0;
  int by_ctas = 0;
  int by_barriers = 0;
  std::string limit;  // what lets in no more: "registers", "registers, shared memory"

  double fraction() const { return max_warps == 0 ? 0 : static_cast<double>(warps) / max_warps; }
};

// Shared memory is taken to be configured as large as it can be, as the driver does for kernels
// that need it. kUnsupported for a compute capability whose limits are not known here.
Result<Occupancy> occupancy_of(const CtaResources& kernel, int sm);

// What a CTA takes of an SM: rounded up to what is handed out at once.
int allocated_registers(const CtaResources& kernel);
int allocated_shared_bytes(const CtaResources& kernel, int sm);

}  // namespace pagejit::inspect
