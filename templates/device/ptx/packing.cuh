// Rounding two f32 to a pair of 16-bit floats.
#pragma once

namespace dev {

// The first PTX source is the upper half.
PAGEJIT_DEVICE uint32_t pack_f16x2(float low, float high) {
  uint32_t y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

PAGEJIT_DEVICE uint32_t pack_bf16x2(float low, float high) {
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

}  // namespace dev
