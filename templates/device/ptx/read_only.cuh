// Loads of what nobody writes meanwhile.
#pragma once

namespace dev {

// For memory that no thread of this launch writes.
template <class T>
PAGEJIT_DEVICE T load_global_nc(const T* p) {
  RawWord<sizeof(T)> word;
  word.load_nc(p);
  return __builtin_bit_cast(T, word);
}

// 0 where not `exists`, without a branch, so that several loads share one latency.
PAGEJIT_DEVICE int load_global_nc_if(bool exists, const int* p) {
  int v;
  asm(
      "{ .reg .pred exists; setp.ne.u32 exists, %2, 0; mov.b32 %0, 0; "
      "@exists ld.global.nc.b32 %0, [%1]; }"
      : "=&r"(v)
      : "l"(p), "r"(static_cast<uint32_t>(exists)));
  return v;
}

}  // namespace dev
