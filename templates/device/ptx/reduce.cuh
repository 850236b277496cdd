// Integers of all lanes of a warp, from sm_80 on.
#pragma once

namespace dev {

PAGEJIT_DEVICE int sum_lanes(int v) {
  int y;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(y) : "r"(v));
  return y;
}

PAGEJIT_DEVICE int max_lanes(int v) {
  int y;
  asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(y) : "r"(v));
  return y;
}

}  // namespace dev
