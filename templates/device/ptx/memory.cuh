// Moving data: global loads and stores, atomics.
#pragma once

namespace dev {

// CTA-wide dynamic shared memory. ldmatrix and cp.async need 16 bytes; 1024 leaves room for
// swizzled bulk copies.
PAGEJIT_DEVICE unsigned char* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char pagejit_dynamic_shared[];
  // Held, or each use would find the address of the CTA's window once more.
  uint32_t address;
  asm("mov.b32 %0, %1;"
      : "=r"(address)
      : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(pagejit_dynamic_shared))));
  return static_cast<unsigned char*>(__cvta_shared_to_generic(address));
}

template <int kBytes>
struct RawWord;
template <>
struct RawWord<1> {
  uint8_t v;
  PAGEJIT_DEVICE void load(const void* p) {
    uint32_t wide;
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(wide) : "l"(p) : "memory");
    v = static_cast<uint8_t>(wide);
  }
  PAGEJIT_DEVICE void load_nc(const void* p) {
    uint32_t wide;
    asm("ld.global.nc.u8 %0, [%1];" : "=r"(wide) : "l"(p));
    v = static_cast<uint8_t>(wide);
  }
  PAGEJIT_DEVICE void store(void* p) const {
    asm volatile("st.global.u8 [%0], %1;" ::"l"(p), "r"(static_cast<uint32_t>(v)) : "memory");
  }
};
template <>
struct RawWord<2> {
  uint16_t v;
  PAGEJIT_DEVICE void load(const void* p) {
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
  }
  PAGEJIT_DEVICE void load_nc(const void* p) {
    asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(p));
  }
  PAGEJIT_DEVICE void store(void* p) const {
    asm volatile("st.global.u16 [%0], %1;" ::"l"(p), "h"(v) : "memory");
  }
};
template <>
struct RawWord<4> {
  uint32_t v;
  PAGEJIT_DEVICE void load(const void* p) {
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  }
  PAGEJIT_DEVICE void load_nc(const void* p) {
    asm("ld.global.nc.b32 %0, [%1];" : "=r"(v) : "l"(p));
  }
  PAGEJIT_DEVICE void store(void* p) const {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  }
};
template <>
struct RawWord<8> {
  uint32_t v[2];
  PAGEJIT_DEVICE void load(const void* p) {
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(p) : "memory");
  }
  PAGEJIT_DEVICE void load_nc(const void* p) {
    asm("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(p));
  }
  PAGEJIT_DEVICE void store(void* p) const {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(v[0]), "r"(v[1]) : "memory");
  }
};
template <>
struct RawWord<16> {
  uint32_t v[4];
  PAGEJIT_DEVICE void load(const void* p) {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "l"(p)
                 : "memory");
  }
  PAGEJIT_DEVICE void load_nc(const void* p) {
    asm("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
        : "l"(p));
  }
  PAGEJIT_DEVICE void store(void* p) const {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v[0]), "r"(v[1]),
                 "r"(v[2]), "r"(v[3])
                 : "memory");
  }
};

template <class T>
PAGEJIT_DEVICE const T* hold(const T* p) {
  const T* held;
  asm("mov.b64 %0, %1;" : "=l"(held) : "l"(p));
  return held;
}

// v, of which the compiler forgets what it knows: what is computed from it is not moved to the
// front of a loop.
PAGEJIT_DEVICE int opaque(int v) {
  int same;
  asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(v));
  return same;
}

// T is a trivial type of 1, 2, 4, 8 or 16 bytes, p is aligned to its size.
template <class T>
PAGEJIT_DEVICE T load_global(const T* p) {
  RawWord<sizeof(T)> word;
  word.load(p);
  return __builtin_bit_cast(T, word);
}

template <class T>
PAGEJIT_DEVICE void store_global(T* p, T value) {
  __builtin_bit_cast(RawWord<sizeof(T)>, value).store(p);
}

PAGEJIT_DEVICE uint32_t atomic_inc_acq_rel(uint32_t* p, uint32_t limit) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(p), "r"(limit)
               : "memory");
  return old;
}

PAGEJIT_DEVICE int atomic_cas(int* p, int expected, int desired) {
  int old;
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(p), "r"(expected), "r"(desired)
               : "memory");
  return old;
}

PAGEJIT_DEVICE void atomic_add_shared(int* p, int v) {
  asm volatile(
      "red.shared.add.s32 [%0], %1;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(p))),
      "r"(v)
      : "memory");
}

}  // namespace dev
