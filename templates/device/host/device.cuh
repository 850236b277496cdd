// The device functions (see ../README.md) for the CPU emulator. Each takes the place of its caller
// as a last, defaulted argument, so that every report names a line of the kernel text.
#pragma once

namespace dev {

using pagejit_emulator::api;
using pagejit_emulator::Loc;

PAGEJIT_UNCHECKED inline int thread_idx() { return api->thread_idx(); }
PAGEJIT_UNCHECKED inline int lane_idx() { return api->thread_idx() % 32; }
PAGEJIT_UNCHECKED inline int block_idx_x() { return api->block_idx(0); }
PAGEJIT_UNCHECKED inline int block_idx_y() { return api->block_idx(1); }
PAGEJIT_UNCHECKED inline int block_idx_z() { return api->block_idx(2); }
PAGEJIT_UNCHECKED inline int grid_dim_x() { return api->grid_dim(0); }
PAGEJIT_UNCHECKED inline int grid_dim_y() { return api->grid_dim(1); }
PAGEJIT_UNCHECKED inline int grid_dim_z() { return api->grid_dim(2); }
PAGEJIT_UNCHECKED inline unsigned char* dynamic_shared() { return api->dynamic_shared(); }

// ---- Global memory ----

template <class T>
PAGEJIT_UNCHECKED inline const T* hold(const T* p) {
  return p;
}
PAGEJIT_UNCHECKED inline int opaque(int v) { return v; }

template <class T>
PAGEJIT_UNCHECKED inline T load_global(const T* p, Loc loc = Loc::current()) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 ||
                sizeof(T) == 16);
  api->load_global(p, sizeof(T), loc);
  return *p;
}

template <class T>
PAGEJIT_UNCHECKED inline T load_global_nc(const T* p, Loc loc = Loc::current()) {
  return load_global(p, loc);
}

PAGEJIT_UNCHECKED inline int load_global_nc_if(bool exists, const int* p,
                                               Loc loc = Loc::current()) {
  return exists ? load_global(p, loc) : 0;
}

template <class T>
PAGEJIT_UNCHECKED inline void store_global(T* p, T value, Loc loc = Loc::current()) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 ||
                sizeof(T) == 16);
  api->store_global(p, sizeof(T), loc);
  *p = value;
}

PAGEJIT_UNCHECKED inline uint32_t atomic_inc_acq_rel(uint32_t* p, uint32_t limit,
                                                     Loc loc = Loc::current()) {
  return api->atomic_inc(p, limit, loc);
}
PAGEJIT_UNCHECKED inline int atomic_cas(int* p, int expected, int desired,
                                        Loc loc = Loc::current()) {
  return api->atomic_cas(p, expected, desired, loc);
}
PAGEJIT_UNCHECKED inline void atomic_add_shared(int* p, int v, Loc loc = Loc::current()) {
  api->atomic_add_shared(p, v, loc);
}
PAGEJIT_UNCHECKED inline void fence_gpu(Loc loc = Loc::current()) { api->fence_gpu(loc); }
PAGEJIT_UNCHECKED inline void grid_dependency_wait(Loc loc = Loc::current()) {
  api->grid_dependency_wait(loc);
}
// A launch of the emulator is over before the next one begins.
PAGEJIT_UNCHECKED inline void grid_dependency_launch() {}

// ---- Asynchronous copies ----

PAGEJIT_UNCHECKED inline void cp_async_16(void* shared, const void* global, bool valid,
                                          Loc loc = Loc::current()) {
  api->cp_async(shared, global, 16, valid ? 16 : 0, loc);
}
PAGEJIT_UNCHECKED inline void cp_async_8(void* shared, const void* global, bool valid,
                                         Loc loc = Loc::current()) {
  api->cp_async(shared, global, 8, valid ? 8 : 0, loc);
}
PAGEJIT_UNCHECKED inline void cp_async_4(void* shared, const void* global, bool valid,
                                         Loc loc = Loc::current()) {
  api->cp_async(shared, global, 4, valid ? 4 : 0, loc);
}
template <int kBytes>
PAGEJIT_UNCHECKED inline void cp_async_part(void* shared, const void* global, int valid_bytes,
                                            Loc loc = Loc::current()) {
  static_assert(kBytes == 8 || kBytes == 16);
  api->cp_async(shared, global, kBytes, static_cast<unsigned>(valid_bytes), loc);
}
PAGEJIT_UNCHECKED inline void cp_async_commit(Loc loc = Loc::current()) {
  api->cp_async_commit(loc);
}
template <int N>
PAGEJIT_UNCHECKED inline void cp_async_wait(Loc loc = Loc::current()) {
  static_assert(N >= 0);
  api->cp_async_wait(N, loc);
}

// ---- Fragments ----

PAGEJIT_UNCHECKED inline void ldmatrix_x4(uint32_t (&r)[4], const void* row,
                                          Loc loc = Loc::current()) {
  api->ldmatrix(r, 4, false, row, loc);
}
PAGEJIT_UNCHECKED inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row,
                                                Loc loc = Loc::current()) {
  api->ldmatrix(r, 4, true, row, loc);
}
PAGEJIT_UNCHECKED inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row,
                                                Loc loc = Loc::current()) {
  api->ldmatrix(r, 2, true, row, loc);
}
PAGEJIT_UNCHECKED inline void ldmatrix_x2(uint32_t (&r)[2], const void* row,
                                          Loc loc = Loc::current()) {
  api->ldmatrix(r, 2, false, row, loc);
}
PAGEJIT_UNCHECKED inline uint32_t movmatrix_trans(uint32_t a, Loc loc = Loc::current()) {
  return api->movmatrix_trans(a, loc);
}
// With zeros for the second half of a and b.
PAGEJIT_UNCHECKED inline void mma_m16n8k8_f16(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b,
                                              Loc loc = Loc::current()) {
  const uint32_t a[4] = {a0, a1, 0, 0};
  api->mma_m16n8k16(d, a, b, 0, false, loc);
}
PAGEJIT_UNCHECKED inline void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1, Loc loc = Loc::current()) {
  api->mma_m16n8k16(d, a, b0, b1, false, loc);
}
PAGEJIT_UNCHECKED inline void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1, Loc loc = Loc::current()) {
  api->mma_m16n8k16(d, a, b0, b1, true, loc);
}

// ---- Arithmetic ----

PAGEJIT_UNCHECKED inline float exp2_approx(float x) { return api->exp2_approx(x); }
PAGEJIT_UNCHECKED inline float log2_approx(float x) { return api->log2_approx(x); }
PAGEJIT_UNCHECKED inline float rcp_approx(float x) { return api->rcp_approx(x); }
PAGEJIT_UNCHECKED inline float unpack_f16(uint16_t code) {
  return pagejit_emulator::f32_from_f16(code);
}
PAGEJIT_UNCHECKED inline uint32_t pack_f16x2(float low, float high) {
  return pagejit_emulator::f16_from_f32(low) |
         static_cast<uint32_t>(pagejit_emulator::f16_from_f32(high)) << 16;
}
PAGEJIT_UNCHECKED inline uint32_t pack_bf16x2(float low, float high) {
  return pagejit_emulator::bf16_from_f32(low) |
         static_cast<uint32_t>(pagejit_emulator::bf16_from_f32(high)) << 16;
}
PAGEJIT_UNCHECKED inline uint32_t unpack_e4m3x2(uint32_t pair) {
  return pagejit_emulator::f16_from_f32(pagejit_emulator::f32_from_e4m3(pair & 0xffu)) |
         static_cast<uint32_t>(pagejit_emulator::f16_from_f32(
             pagejit_emulator::f32_from_e4m3(pair >> 8 & 0xffu)))
             << 16;
}
// The two halves of a and of b, combined in f32 and rounded. A sum is exact in f32 unless it is
// rounded to the greater one in f16 as well.
template <class Combine>
PAGEJIT_UNCHECKED inline uint32_t combine_f16x2(uint32_t a, uint32_t b, Combine combine) {
  using pagejit_emulator::f16_from_f32;
  using pagejit_emulator::f32_from_f16;
  const auto of_half = [&](int i) {
    const auto half = [i](uint32_t v) { return f32_from_f16(static_cast<uint16_t>(v >> (16 * i))); };
    return static_cast<uint32_t>(f16_from_f32(combine(half(a), half(b))));
  };
  return of_half(0) | of_half(1) << 16;
}
PAGEJIT_UNCHECKED inline uint32_t mul_f16x2(uint32_t a, uint32_t b) {
  return combine_f16x2(a, b, [](float x, float y) { return x * y; });
}
PAGEJIT_UNCHECKED inline uint32_t add_f16x2(uint32_t a, uint32_t b) {
  return combine_f16x2(a, b, [](float x, float y) { return x + y; });
}
PAGEJIT_UNCHECKED inline uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
  const auto of_half = [&](int i) {
    const auto half = [i](uint32_t v) {
      return double{pagejit_emulator::f32_from_f16(static_cast<uint16_t>(v >> (16 * i)))};
    };
    // The product is exact, and so is the sum unless the smaller one is too small for an f16 to see.
    return static_cast<uint32_t>(pagejit_emulator::f16_from_f64(half(a) * half(b) + half(c)));
  };
  return of_half(0) | of_half(1) << 16;
}
PAGEJIT_UNCHECKED inline uint32_t and_xor(uint32_t a, uint32_t mask, uint32_t flips) {
  return (a & mask) ^ flips;
}
PAGEJIT_UNCHECKED inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t y = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t from = selector >> (4 * i) & 7u;
    y |= static_cast<uint32_t>(bytes >> (8 * from) & 0xffu) << (8 * i);
  }
  return y;
}
PAGEJIT_UNCHECKED inline uint16_t pack_e4m3x2(float low, float high) {
  return static_cast<uint16_t>(pagejit_emulator::f8_from_f32<3, 448>(low) |
                               pagejit_emulator::f8_from_f32<3, 448>(high) << 8);
}
PAGEJIT_UNCHECKED inline uint16_t pack_e5m2x2(float low, float high) {
  return static_cast<uint16_t>(pagejit_emulator::f8_from_f32<2, 57344>(low) |
                               pagejit_emulator::f8_from_f32<2, 57344>(high) << 8);
}
PAGEJIT_UNCHECKED inline float max2(float a, float b) { return a > b || b != b ? a : b; }

// ---- Warp and CTA ----

PAGEJIT_UNCHECKED inline float shuffle_xor(float v, int lane_mask, Loc loc = Loc::current()) {
  return __builtin_bit_cast(float,
                            api->shuffle_xor(__builtin_bit_cast(uint32_t, v), lane_mask, loc));
}
template <class T>
PAGEJIT_UNCHECKED inline T shuffle(T v, int src_lane, Loc loc = Loc::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 4) {
    const uint64_t bits = api->shuffle(__builtin_bit_cast(uint32_t, v), src_lane, loc);
    return __builtin_bit_cast(T, static_cast<uint32_t>(bits));
  } else {
    return __builtin_bit_cast(T, api->shuffle(__builtin_bit_cast(uint64_t, v), src_lane, loc));
  }
}
PAGEJIT_UNCHECKED inline bool any(bool p, Loc loc = Loc::current()) {
  return api->count_lanes(p, loc) != 0;
}
PAGEJIT_UNCHECKED inline int count_lanes(bool p, Loc loc = Loc::current()) {
  return api->count_lanes(p, loc);
}
PAGEJIT_UNCHECKED inline int sum_lanes(int v, Loc loc = Loc::current()) {
  return api->reduce_lanes(v, false, loc);
}
PAGEJIT_UNCHECKED inline int max_lanes(int v, Loc loc = Loc::current()) {
  return api->reduce_lanes(v, true, loc);
}
PAGEJIT_UNCHECKED inline void sync_warp(Loc loc = Loc::current()) { api->sync_warp(loc); }
PAGEJIT_UNCHECKED inline void sync_cta(Loc loc = Loc::current()) { api->sync_cta(loc); }
PAGEJIT_UNCHECKED inline void sync_named(int barrier, int num_threads, Loc loc = Loc::current()) {
  api->sync_named(barrier, num_threads, loc);
}

}  // namespace dev
