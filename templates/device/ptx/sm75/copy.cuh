// Copies from global to shared memory where none are asynchronous: what was copied is there when the
// call returns, so groups are nothing to wait for.
#pragma once

namespace dev {

// Predicated instead of branched around, so that the loads of several copies may be under way at
// once.
PAGEJIT_DEVICE void copy_to_shared_16(void* shared, const void* global, bool valid,
                                      const uint32_t (&mask)[4]) {
  uint32_t v[4] = {};
  asm("{ .reg .pred valid; setp.ne.u32 valid, %5, 0; "
      "@valid ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
      : "+r"(v[0]), "+r"(v[1]), "+r"(v[2]), "+r"(v[3])
      : "l"(global), "r"(static_cast<uint32_t>(valid)));
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(shared)),
               "r"(v[0] & mask[0]), "r"(v[1] & mask[1]), "r"(v[2] & mask[2]), "r"(v[3] & mask[3])
               : "memory");
}

PAGEJIT_DEVICE void copy_to_shared_8(void* shared, const void* global, bool valid,
                                     const uint32_t (&mask)[2]) {
  uint32_t v[2] = {};
  asm("{ .reg .pred valid; setp.ne.u32 valid, %3, 0; "
      "@valid ld.global.nc.v2.b32 {%0, %1}, [%2]; }"
      : "+r"(v[0]), "+r"(v[1])
      : "l"(global), "r"(static_cast<uint32_t>(valid)));
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(shared_address(shared)),
               "r"(v[0] & mask[0]), "r"(v[1] & mask[1])
               : "memory");
}

PAGEJIT_DEVICE void cp_async_16(void* shared, const void* global, bool valid) {
  copy_to_shared_16(shared, global, valid, {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu});
}

PAGEJIT_DEVICE void cp_async_8(void* shared, const void* global, bool valid) {
  copy_to_shared_8(shared, global, valid, {0xffffffffu, 0xffffffffu});
}

PAGEJIT_DEVICE void cp_async_4(void* shared, const void* global, bool valid) {
  uint32_t v = 0;
  asm("{ .reg .pred valid; setp.ne.u32 valid, %2, 0; @valid ld.global.nc.b32 %0, [%1]; }"
      : "+r"(v)
      : "l"(global), "r"(static_cast<uint32_t>(valid)));
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared_address(shared)), "r"(v) : "memory");
}

// kBytes is 8 or 16; the first valid_bytes are copied, zeros follow. What is aligned to kBytes is
// read as a whole.
template <int kBytes>
PAGEJIT_DEVICE void cp_async_part(void* shared, const void* global, int valid_bytes) {
  const uint32_t first = mask_of_word(0, valid_bytes);
  const uint32_t second = mask_of_word(1, valid_bytes);
  if constexpr (kBytes == 16) {
    copy_to_shared_16(shared, global, valid_bytes > 0,
                      {first, second, mask_of_word(2, valid_bytes), mask_of_word(3, valid_bytes)});
  } else {
    copy_to_shared_8(shared, global, valid_bytes > 0, {first, second});
  }
}

PAGEJIT_DEVICE void cp_async_commit() {}

template <int kPending>
PAGEJIT_DEVICE void cp_async_wait() {}

}  // namespace dev
