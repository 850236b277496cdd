// The device functions as the emulator does them: what the table given to images points to. All act
// on machine() and run on a fiber of it. Thread-safety: none.
#pragma once

#include <cstdint>

#include "runtime/emulator/cta.h"
#include "templates/device/host/emulator_abi.cuh"

namespace pagejit_emulator {

// The table for Image::load.
const Api* device_api();

// ---- memory_access.cc ----

void load_global(const void* p, unsigned bytes, Loc loc);
void store_global(void* p, unsigned bytes, Loc loc);
unsigned atomic_inc(unsigned* p, unsigned limit, Loc loc);
int atomic_cas(int* p, int expected, int desired, Loc loc);
void atomic_add_shared(int* p, int v, Loc loc);
void fence_gpu(Loc loc);
void grid_dependency_wait(Loc loc);
void plain_access(const void* p, unsigned long long bytes, bool is_write, const void* pc);
void undefined_behaviour(const char* what, const char* file, unsigned line, unsigned column);

// Ends the launch unless `bytes` at p, aligned to `alignment`, are in the CTA's shared memory or in
// an allocation. `what` names the access in the report.
void check_shared(const void* p, unsigned bytes, unsigned alignment, const char* what, Loc loc);
void check_global(const void* p, unsigned bytes, unsigned alignment, const char* what, Loc loc);
// The checkers of checked images; nothing in others.
void note_shared_read(const void* p, unsigned bytes, Loc loc);
void note_global_read(const void* p, unsigned bytes, Loc loc);

// ---- async_copy.cc ----

void cp_async(void* shared, const void* global, unsigned bytes, unsigned valid_bytes, Loc loc);
void cp_async_commit(Loc loc);
void cp_async_wait(int pending, Loc loc);

// ---- collectives.cc, matrix.cc ----

// The running lane joins its warp in `operation` with `args`. True in the lane that came last,
// which then computes for all lanes (Warp::args) and calls release_warp(). The others return false,
// after that. Ends the launch where lanes diverge.
bool arrive(Operation operation, int detail, void* args, Loc loc);
void release_warp();

void ldmatrix(unsigned* r, int num_matrices, bool transposed, const void* row, Loc loc);
unsigned movmatrix_trans(unsigned a, Loc loc);
void mma_m16n8k16(float* d, const unsigned* a, unsigned b0, unsigned b1, bool bfloat16, Loc loc);
unsigned shuffle_xor(unsigned value, int lane_mask, Loc loc);
unsigned long long shuffle(unsigned long long value, int src_lane, Loc loc);
int count_lanes(bool p, Loc loc);
int reduce_lanes(int value, bool largest, Loc loc);

// ---- barriers.cc ----

void sync_warp(Loc loc);
void sync_cta(Loc loc);
void sync_named(int barrier, int num_threads, Loc loc);

}  // namespace pagejit_emulator
