// Limits of the GPUs that the emulated device can claim to be (CUDA C++ Programming Guide,
// "Technical specifications per compute capability"; SM counts and L2 of one common product each).
// Thread-safety: constants.
#pragma once

#include <cstddef>
#include <string>

namespace pagejit_emulator {

struct DeviceLimits {
  int sm;  // compute capability, major * 10 + minor
  int sm_count;
  int shared_per_sm;  // bytes
  int shared_optin;   // bytes of dynamic shared memory that a CTA may ask for
  int threads_per_sm;
  int ctas_per_sm;
  int l2_bytes;
};

constexpr int kSharedDefaultLimit = 48 * 1024;  // without asking (cuKernelSetAttribute)
constexpr int kSharedReservedPerCta = 1024;     // by the system, since compute capability 8.0
constexpr int kRegistersPerSm = 65536;
constexpr int kMaxThreadsPerCta = 1024;
constexpr int kMaxGridX = 2147483647;
constexpr int kMaxGridYZ = 65535;
constexpr size_t kDeviceMemoryBytes = size_t{64} << 30;

// Null for a compute capability that is not known.
const DeviceLimits* find_device_limits(int sm);

// "75, 80, ...".
std::string known_compute_capabilities();

}  // namespace pagejit_emulator
