// The read bandwidth of a GPU, measured with a kernel that does nothing else: the yardstick of the
// decode benchmark. Thread-safety: one thread.
#pragma once

#include "runtime/jit/compiler.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

// TB/s (10^12 bytes per second): the best of several passes over `bytes` of memory.
Result<double> measure_read_bandwidth(const DeviceSession& session, Compiler& compiler,
                                      const Target& target, size_t bytes);

}  // namespace pagejit
