// Exact conversions between float32 and the 16-bit formats f16 and bf16, on the host. Narrowing
// rounds to nearest, ties to even, as the GPU's cvt.rn does; NaN becomes 0x7fff in both formats, as
// there. Not for speed. Thread-safety: free functions without state.
#pragma once

#include <cstdint>

#include "pagejit/spec.h"

namespace pagejit {

float float_from_f16(uint16_t code);
float float_from_bf16(uint16_t code);
uint16_t f16_from_float(float value);
uint16_t bf16_from_float(float value);

// The same, by type.
float decode_half(DataType type, uint16_t code);
uint16_t encode_half(DataType type, float value);

// The value rounded to the type and widened again.
float round_to_half(DataType type, float value);

// Half the distance from 1 to the next value: the relative error of one rounding. 2^-11 for f16,
// 2^-8 for bf16.
double unit_roundoff(DataType type);

}  // namespace pagejit
