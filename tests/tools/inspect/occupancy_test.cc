#include "tools/inspect/occupancy.h"

#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include "generator/arch.h"

namespace pagejit::inspect {
namespace {

TEST(OccupancyTest, WorkedOutByHand) {
  // 118 registers: 3,776 a warp, 3,840 handed out; a quarter of the SM holds 16,384 / 3,840 = 4
  // warps, the SM 16, which are 4 CTAs of 4 warps. 104,448 B + 1,024 B: 233,472 / 105,472 = 2.
  const Occupancy decode = *occupancy_of({128, 118, 104448, 1}, 90);
  EXPECT_EQ(decode.by_registers, 4);
  EXPECT_EQ(decode.by_shared, 2);
  EXPECT_EQ(decode.by_warps, 16);
  EXPECT_EQ(decode.by_ctas, 32);
  EXPECT_EQ(decode.by_barriers, 64);
  EXPECT_EQ(decode.ctas, 2);
  EXPECT_EQ(decode.warps, 8);
  EXPECT_DOUBLE_EQ(decode.fraction(), 0.125);
  EXPECT_EQ(decode.limit, "shared memory");
  // 64 registers: 2,048 a warp, 8 in a quarter, 32 in the SM: 4 CTAs of 8 warps.
  const Occupancy plain = *occupancy_of({256, 64, 0, 1}, 86);
  EXPECT_EQ(plain.ctas, 4);
  EXPECT_EQ(plain.max_warps, 48);
  EXPECT_EQ(plain.limit, "registers");
  // 16 CTAs at most on 7.5, of 32 warps: both let in 16 of two warps.
  EXPECT_EQ(occupancy_of({64, 32, 0, 1}, 75)->limit, "warps, CTAs");
  EXPECT_EQ(allocated_registers({128, 118, 0, 1}), 4 * 3840);
  EXPECT_EQ(allocated_shared_bytes({128, 118, 100, 1}, 90), 1152);
  EXPECT_EQ(allocated_shared_bytes({128, 118, 100, 1}, 75), 256);
}

TEST(OccupancyTest, WhatCannotBeLaunchedHasNone) {
  EXPECT_EQ(occupancy_of({128, 32, 227 * 1024, 1}, 90)->ctas, 1);
  EXPECT_EQ(occupancy_of({128, 32, 227 * 1024 + 1, 1}, 90)->ctas, 0);
  EXPECT_EQ(occupancy_of({128, 32, 100 * 1024, 1}, 120)->limit, "shared memory");
  EXPECT_EQ(occupancy_of({1024, 80, 0, 1}, 90)->ctas, 0) << "81,920 registers";
  EXPECT_EQ(occupancy_of({1056, 16, 0, 1}, 90)->ctas, 0);
  EXPECT_FALSE(occupancy_of({128, 32, 0, 1}, 70));
}

// NVIDIA's own calculator, which the toolkit has as a header.
int ctas_by_nvidia(const CtaResources& kernel, int sm) {
  const Arch arch = *arch_of({.sm = sm});
  cudaOccDeviceProp device;
  device.computeMajor = sm / 10;
  device.computeMinor = sm % 10;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = arch.max_warps_per_sm * 32;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.sharedMemPerMultiprocessor = static_cast<size_t>(arch.shared_bytes_per_sm);
  device.numSms = 1;
  device.sharedMemPerBlockOptin = static_cast<size_t>(arch.shared_bytes_per_cta);
  device.reservedSharedMemPerBlock = sm >= 80 ? 1024 : 0;
  cudaOccFuncAttributes function;
  function.maxThreadsPerBlock = 1024;
  function.numRegs = kernel.registers;
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  function.maxDynamicSharedSizeBytes = static_cast<size_t>(kernel.shared_bytes);
  function.numBlockBarriers = kernel.barriers;
  cudaOccDeviceState state;
  cudaOccResult result;
  const cudaOccError error =
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, kernel.threads,
                                              static_cast<size_t>(kernel.shared_bytes));
  return error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -error;
}

TEST(OccupancyTest, IsThatOfCudasCalculator) {
  int compared = 0;
  for (const int sm : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121}) {
    for (int threads = 32; threads <= 1024; threads += 32) {
      for (const int registers : {8, 24, 32, 40, 63, 64, 65, 96, 118, 128, 168, 200, 255}) {
        for (const int kib_quarters :
             {0, 1, 7, 40, 97, 150, 200, 255, 256, 400, 408, 650, 652, 904}) {
          for (const int barriers : {0, 1, 5}) {
            const CtaResources kernel = {threads, registers, kib_quarters * 256, barriers};
            const Result<Occupancy> ours = occupancy_of(kernel, sm);
            ASSERT_TRUE(ours);
            ASSERT_EQ(ours->ctas, ctas_by_nvidia(kernel, sm))
                << "sm_" << sm << ", " << threads << " threads, " << registers << " registers, "
                << kernel.shared_bytes << " B, " << barriers << " barriers";
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 100000);
}

}  // namespace
}  // namespace pagejit::inspect
