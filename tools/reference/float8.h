// Exact conversions between float32 and the 8-bit float formats, on the host, by search among all
// values of the format: independent of any arithmetic on bits. Rounding to nearest, ties to the
// even code, saturating at the greatest finite value, infinities too; NaN becomes 0x7f. Not for
// speed. Thread-safety: free functions without state.
#pragma once

#include <cstdint>

#include "pagejit/spec.h"

namespace pagejit {

// type: kFloat8E4m3 or kFloat8E5m2.
float decode_float8(DataType type, uint8_t code);
uint8_t encode_float8(DataType type, float value);

}  // namespace pagejit
