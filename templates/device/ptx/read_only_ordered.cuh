// Loads of what no thread of this launch writes, but perhaps the kernel before it, which may still
// run: ordinary loads, which neither compiler moves to the front of grid_dependency_wait().
#pragma once

namespace dev {

template <class T>
PAGEJIT_DEVICE T load_global_nc(const T* p) {
  return load_global(p);
}

// 0 where not `exists`, without a branch, so that several loads share one latency.
PAGEJIT_DEVICE int load_global_nc_if(bool exists, const int* p) {
  int v;
  asm volatile(
      "{ .reg .pred exists; setp.ne.u32 exists, %2, 0; mov.b32 %0, 0; "
      "@exists ld.global.b32 %0, [%1]; }"
      : "=&r"(v)
      : "l"(p), "r"(static_cast<uint32_t>(exists))
      : "memory");
  return v;
}

}  // namespace dev
