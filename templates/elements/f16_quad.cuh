// Codes of 8 bits as operands of products of f16.
#pragma once

// Four f16, the first two in `low`.
struct F16Quad {
  uint32_t low;
  uint32_t high;
};

#if PAGEJIT_UNPACK_E4M3
// Four codes of e4m3, exactly; NaN stays NaN.
PAGEJIT_DEVICE F16Quad unpack_e4m3(uint32_t codes) {
#if PAGEJIT_FP8_CONVERT
  return {dev::unpack_e4m3x2(codes), dev::unpack_e4m3x2(codes >> 16)};
#else
  constexpr uint32_t kTwoTo8 = 0x5c005c00u;  // f16 has the exponent bias 15, e4m3 has 7
  // 37,376: takes 480 / 2^8, which the code of NaN becomes, beyond f16, and 448 / 2^8 not.
  constexpr uint32_t kOverflowsFrom480 = 0x78907890u;
  const auto widen = [](uint32_t shifted) {  // codes in the upper byte of each half
    const uint32_t scaled = (shifted & 0x80008000u) | (shifted & 0x7f007f00u) >> 1;
    const uint32_t infinite_or_not = dev::mul_f16x2(scaled, kOverflowsFrom480);
    // Infinity times 0 is NaN; all else adds a zero of the value's own sign.
    return dev::fma_f16x2(infinite_or_not, 0u, dev::mul_f16x2(scaled, kTwoTo8));
  };
  return {widen(dev::permute_bytes(codes, 0, 0x1404)), widen(dev::permute_bytes(codes, 0, 0x3424))};
#endif
}
#endif
