// Device functions for NVRTC and sm_75: those of ../prelude.cuh, but for products of bf16, by the
// instructions that this target has.
#pragma once

#include "device/ptx/words.cuh"
#include "device/ptx/index.cuh"
#include "device/ptx/math.cuh"
#include "bits.cuh"
#include "packing.cuh"
#include "device/ptx/matrix.cuh"
#include "products.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/read_only.cuh"
#include "copy.cuh"
#include "device/ptx/sync.cuh"
#include "reduce.cuh"
