// The table of device functions, and those that are too small for a file of their own.
#include <cmath>

#include "runtime/emulator/device_functions.h"
#include "runtime/emulator/machine.h"

namespace pagejit_emulator {
namespace {

int thread_idx() { return machine().current().idx; }

int block_idx(int dimension) {
  const Cta& cta = *machine().current().cta;
  return dimension == 0 ? cta.x : dimension == 1 ? cta.y : cta.z;
}

int grid_dim(int dimension) { return machine().request().grid[dimension]; }

unsigned char* dynamic_shared() { return machine().current().cta->arena.data(); }

// .ftz: subnormal inputs and results count as zero.
float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float exp2_approx(float x) { return flush(std::exp2(flush(x))); }
float log2_approx(float x) { return flush(std::log2(flush(x))); }
float rcp_approx(float x) { return flush(1.0f / flush(x)); }

constexpr Api kApi = {
    .abi = kEmulatorAbi,
    .thread_idx = thread_idx,
    .block_idx = block_idx,
    .grid_dim = grid_dim,
    .dynamic_shared = dynamic_shared,
    .load_global = load_global,
    .store_global = store_global,
    .atomic_inc = atomic_inc,
    .atomic_cas = atomic_cas,
    .atomic_add_shared = atomic_add_shared,
    .fence_gpu = fence_gpu,
    .grid_dependency_wait = grid_dependency_wait,
    .cp_async = cp_async,
    .cp_async_commit = cp_async_commit,
    .cp_async_wait = cp_async_wait,
    .ldmatrix = ldmatrix,
    .movmatrix_trans = movmatrix_trans,
    .mma_m16n8k16 = mma_m16n8k16,
    .shuffle_xor = shuffle_xor,
    .shuffle = shuffle,
    .count_lanes = count_lanes,
    .reduce_lanes = reduce_lanes,
    .sync_warp = sync_warp,
    .sync_cta = sync_cta,
    .sync_named = sync_named,
    .exp2_approx = exp2_approx,
    .log2_approx = log2_approx,
    .rcp_approx = rcp_approx,
    .access = plain_access,
    .undefined_behaviour = undefined_behaviour,
};

}  // namespace

const Api* device_api() { return &kApi; }

}  // namespace pagejit_emulator
