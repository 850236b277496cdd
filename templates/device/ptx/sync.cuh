// Exchange and synchronisation within a warp, a CTA and the GPU.
#pragma once

namespace dev {

PAGEJIT_DEVICE void sync_warp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
PAGEJIT_DEVICE void sync_cta() { asm volatile("bar.sync 0;" ::: "memory"); }

// barrier: 1 to 15 (0 is sync_cta's); num_threads: a multiple of 32.
PAGEJIT_DEVICE void sync_named(int barrier, int num_threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(num_threads) : "memory");
}

PAGEJIT_DEVICE void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

PAGEJIT_DEVICE uint32_t shuffle_word(uint32_t v, int src_lane) {
  uint32_t y;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(v), "r"(src_lane));
  return y;
}

// T is a trivial type of 4 or 8 bytes.
template <class T>
PAGEJIT_DEVICE T shuffle(T v, int src_lane) {
  if constexpr (sizeof(T) == 8) {
    struct Halves {
      uint32_t low, high;
    };
    const Halves halves = __builtin_bit_cast(Halves, v);
    return __builtin_bit_cast(
        T, Halves{shuffle_word(halves.low, src_lane), shuffle_word(halves.high, src_lane)});
  } else {
    return __builtin_bit_cast(T, shuffle_word(__builtin_bit_cast(uint32_t, v), src_lane));
  }
}

PAGEJIT_DEVICE float shuffle_xor(float v, int lane_mask) {
  float y;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=f"(y)
               : "f"(v), "r"(lane_mask));
  return y;
}

PAGEJIT_DEVICE bool any(bool p) {
  uint32_t y;
  asm volatile(
      "{ .reg .pred in, out; setp.ne.u32 in, %1, 0; vote.sync.any.pred out, in, 0xffffffff; "
      "selp.u32 %0, 1, 0, out; }"
      : "=r"(y)
      : "r"(static_cast<uint32_t>(p)));
  return y != 0;
}

PAGEJIT_DEVICE int count_lanes(bool p) {
  int y;
  asm volatile(
      "{ .reg .pred in; .reg .b32 lanes; setp.ne.u32 in, %1, 0; "
      "vote.sync.ballot.b32 lanes, in, 0xffffffff; popc.b32 %0, lanes; }"
      : "=r"(y)
      : "r"(static_cast<uint32_t>(p)));
  return y;
}

}  // namespace dev
