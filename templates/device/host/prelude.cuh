// Host prelude: makes a kernel text ordinary C++20 for the CPU emulator. It gives the words of CUDA
// that a kernel text uses, the three PAGEJIT macros and the binding to the emulator.
// Self-contained: no system header.
#pragma once

#include "templates/device/host/emulator_abi.cuh"
#include "templates/device/host/float16.cuh"
#include "templates/device/host/float8.cuh"

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long size_t;
typedef unsigned long uintptr_t;

#define __grid_constant__
#define __device__
#define __host__
#define __forceinline__ inline
#define __align__(bytes) alignas(bytes)

// The prelude's own code is no part of the kernel: the checker must not see its accesses.
#define PAGEJIT_UNCHECKED __attribute__((no_sanitize("thread", "undefined")))
#define PAGEJIT_EXPORT __attribute__((visibility("default"), used))

namespace pagejit_emulator {

inline const Api* api = nullptr;

PAGEJIT_UNCHECKED inline void bind(const Api* table) { api = table; }

// PAGEJIT_KERNEL leaves its numbers under an index of __COUNTER__ for the PAGEJIT_ENTRY that
// follows it.
template <int kIndex>
struct LaunchBoundsIndex {};

struct LaunchBounds {
  int num_threads;
  int min_ctas;
};

}  // namespace pagejit_emulator

namespace pagejit_emulator {
#ifdef PAGEJIT_CHECKED
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif
}  // namespace pagejit_emulator

extern "C" PAGEJIT_EXPORT const pagejit_emulator::ImageEntry pagejit_emulator_image = {
    pagejit_emulator::kEmulatorAbi, pagejit_emulator::kChecked, &pagejit_emulator::bind};

#ifdef PAGEJIT_CHECKED
#include "templates/device/host/checked.cuh"
#endif

#define PAGEJIT_DEVICE inline

#define PAGEJIT_KERNEL_AT(index, num_threads, min_ctas)             \
  constexpr ::pagejit_emulator::LaunchBounds pagejit_launch_bounds( \
      ::pagejit_emulator::LaunchBoundsIndex<(index)>) {             \
    return {num_threads, min_ctas};                                 \
  }                                                                 \
  extern "C" void
#define PAGEJIT_KERNEL(num_threads, min_ctas) PAGEJIT_KERNEL_AT(__COUNTER__, num_threads, min_ctas)

#define PAGEJIT_ENTRY_AT(index, kernel_name, ParamsType)                                           \
  PAGEJIT_UNCHECKED static void kernel_name##_run(const void* params) {                            \
    kernel_name(*static_cast<const ParamsType*>(params));                                          \
  }                                                                                                \
  extern "C" PAGEJIT_EXPORT const ::pagejit_emulator::KernelEntry kernel_name##_emulator_entry = { \
      #kernel_name, sizeof(ParamsType),                                                            \
      pagejit_launch_bounds(::pagejit_emulator::LaunchBoundsIndex<(index)-1>{}).num_threads,       \
      pagejit_launch_bounds(::pagejit_emulator::LaunchBoundsIndex<(index)-1>{}).min_ctas,          \
      &kernel_name##_run};
#define PAGEJIT_ENTRY(kernel_name, ParamsType) \
  PAGEJIT_ENTRY_AT(__COUNTER__, kernel_name, ParamsType)

#include "templates/device/host/device.cuh"
