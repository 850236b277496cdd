// Exact conversions between float32 and the data types of the tensors, on the host. Narrowing
// rounds to nearest, ties to even, as the GPU's cvt.rn does. f16 and bf16 become infinite beyond
// their range; the formats of 8 bits saturate, infinity too, as cvt.rn.satfinite does. NaN becomes
// 0x7fff or 0x7f, as there. int8 holds whole numbers in [-127, 127], int4 in [-8, 7]; both saturate
// too, and take 0 for NaN. Not for speed. Thread-safety: free functions without state.
#pragma once

#include <cstdint>

#include "pagejit/spec.h"

namespace pagejit {

// A code is the lowest data_type_bits(type) bits; those above are 0.
float decode_float(DataType type, uint32_t code);
uint32_t encode_float(DataType type, float value);

// The value rounded to the type and widened again.
float round_to_type(DataType type, float value);

// Half the distance from 1 to the next value: the relative error of one rounding. 2^-11 for f16,
// 2^-8 for bf16, 2^-24 for f32, 2^-4 and 2^-3 for e4m3 and e5m2. Not of int8, int4.
double unit_roundoff(DataType type);

// The greatest finite value. Of e4m3 448, of e5m2 57344, of int8 127, of int4 7.
float greatest_value(DataType type);

// Element `index` of an array of the type. Alignment does not matter; of int4 the
// element of even index is the low half of its byte.
float load_element(DataType type, const void* start, int64_t index);

}  // namespace pagejit
