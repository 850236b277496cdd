// Where a thread is: its place in the warp, the CTA and the grid.
#pragma once

namespace dev {

PAGEJIT_DEVICE int thread_idx() { return static_cast<int>(threadIdx.x); }
PAGEJIT_DEVICE int lane_idx() { return static_cast<int>(threadIdx.x % 32); }
PAGEJIT_DEVICE int block_idx_x() { return static_cast<int>(blockIdx.x); }
PAGEJIT_DEVICE int block_idx_y() { return static_cast<int>(blockIdx.y); }
PAGEJIT_DEVICE int block_idx_z() { return static_cast<int>(blockIdx.z); }
PAGEJIT_DEVICE int grid_dim_x() { return static_cast<int>(gridDim.x); }
PAGEJIT_DEVICE int grid_dim_y() { return static_cast<int>(gridDim.y); }
PAGEJIT_DEVICE int grid_dim_z() { return static_cast<int>(gridDim.z); }

}  // namespace dev
