// Device functions for NVRTC of kernels for programmatic dependent launch, from sm_90 on: those of
// prelude.cuh, with the functions on which grids depend, and loads that stay behind their wait.
#pragma once

#include "words.cuh"
#include "index.cuh"
#include "math.cuh"
#include "packing.cuh"
#include "matrix.cuh"
#include "products.cuh"
#include "memory.cuh"
#include "read_only_ordered.cuh"
#include "async_copy.cuh"
#include "sync.cuh"
#include "reduce.cuh"
#include "grid_dependency.cuh"
