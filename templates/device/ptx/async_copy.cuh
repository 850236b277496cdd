// Asynchronous copies from global to shared memory.
#pragma once

namespace dev {

// Source size 0 reads nothing and writes zeros.
PAGEJIT_DEVICE void cp_async_16(void* shared, const void* global, bool valid) {
  const uint32_t source_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(source_bytes)
               : "memory");
}

PAGEJIT_DEVICE void cp_async_8(void* shared, const void* global, bool valid) {
  const uint32_t source_bytes = valid ? 8 : 0;
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(source_bytes)
               : "memory");
}

PAGEJIT_DEVICE void cp_async_4(void* shared, const void* global, bool valid) {
  const uint32_t source_bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(source_bytes)
               : "memory");
}

// kBytes is 8 or 16; the first valid_bytes are copied, zeros follow.
template <int kBytes>
PAGEJIT_DEVICE void cp_async_part(void* shared, const void* global, int valid_bytes) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global), "n"(kBytes), "r"(valid_bytes)
               : "memory");
}

PAGEJIT_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
PAGEJIT_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace dev
