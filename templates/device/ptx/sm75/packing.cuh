// Rounding two f32 to a pair of f16, where no instruction does two at once.
#pragma once

namespace dev {

PAGEJIT_DEVICE uint32_t pack_f16x2(float low, float high) {
  uint32_t y;
  asm("{ .reg .b16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; "
      "mov.b32 %0, {low, high}; }"
      : "=r"(y)
      : "f"(low), "f"(high));
  return y;
}

}  // namespace dev
