// Products of matrix fragments, where an mma is 8 deep: the first two registers of a are its columns
// 0 to 7, the others 8 to 15, and so are those of b.
#pragma once

namespace dev {

PAGEJIT_DEVICE void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  mma_m16n8k8_f16(d, a[0], a[1], b0);
  mma_m16n8k8_f16(d, a[2], a[3], b1);
}

}  // namespace dev
