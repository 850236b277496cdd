// Scalar arithmetic and conversions.
#pragma once

namespace dev {

PAGEJIT_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

PAGEJIT_DEVICE float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

PAGEJIT_DEVICE float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

PAGEJIT_DEVICE float max2(float a, float b) {
  float y;
  asm("max.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

PAGEJIT_DEVICE float unpack_f16(uint16_t code) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(code));
  return y;
}

// From sm_89 on.
PAGEJIT_DEVICE uint32_t unpack_e4m3x2(uint32_t pair) {
  uint32_t y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(static_cast<uint16_t>(pair)));
  return y;
}

PAGEJIT_DEVICE uint32_t mul_f16x2(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}

PAGEJIT_DEVICE uint32_t add_f16x2(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}

PAGEJIT_DEVICE uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t y;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}

PAGEJIT_DEVICE uint32_t and_xor(uint32_t a, uint32_t mask, uint32_t flips) {
  uint32_t y;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(y) : "r"(a), "r"(mask), "r"(flips));
  return y;
}

PAGEJIT_DEVICE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t y;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(selector));
  return y;
}

// From here on: compute capability 8.9 and later.
PAGEJIT_DEVICE uint16_t pack_e4m3x2(float low, float high) {
  uint16_t y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
}

PAGEJIT_DEVICE uint16_t pack_e5m2x2(float low, float high) {
  uint16_t y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
}

}  // namespace dev
