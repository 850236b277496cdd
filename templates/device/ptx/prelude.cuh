// Device functions for NVRTC: inline PTX, one instruction per function. The list is explained in
// ../README.md; the same list for the CPU emulator stands in ../host.
#pragma once

#include "words.cuh"
#include "index.cuh"
#include "math.cuh"
#include "packing.cuh"
#include "matrix.cuh"
#include "products.cuh"
#include "memory.cuh"
#include "read_only.cuh"
#include "async_copy.cuh"
#include "sync.cuh"
#include "reduce.cuh"
