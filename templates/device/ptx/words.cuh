// Types and markers of the device functions for NVRTC. How a prelude is put together: ../README.md.
#pragma once

using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;

#define PAGEJIT_HOST_DEVICE __device__
#define PAGEJIT_DEVICE __device__ __forceinline__
#define PAGEJIT_KERNEL(num_threads, min_ctas) \
  extern "C" __global__ void __launch_bounds__(num_threads, min_ctas)
#define PAGEJIT_ENTRY(kernel_name, ParamsType)
