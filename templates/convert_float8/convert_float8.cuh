// Converts elements to an 8-bit float (code = value / scale) or from one (value = code * scale).
#pragma once

using pagejit_shared::ConvertFloat8Config;
using pagejit_shared::ConvertFloat8Params;

template <ConvertFloat8Config C>
PAGEJIT_DEVICE void convert_float8(const ConvertFloat8Params& params) {
  constexpr int kVector = C.vector_elements;
  const int64_t vector =
      static_cast<int64_t>(dev::block_idx_x()) * C.num_threads + dev::thread_idx();
  const int64_t element = vector * kVector;
  if (element >= params.count) return;
  ElementBits<C.from, kVector> bits;
  bits.load_nc(element_at<C.from>(params.from, element));
  float values[kVector];
  if constexpr (pagejit_shared::element_bytes(C.to) == 1) {
    widen<C.from, kVector>(bits, values);
#pragma unroll
    for (int i = 0; i < kVector; ++i) values[i] /= params.scale;
    narrow_to_codes<C.to, kVector, C.has_float8_convert>(values).store(
        element_at<C.to>(params.to, element));
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      values[i] = widen_code<C.from>(code_of<C.from>(bits, i)) * params.scale;
    }
    narrow<C.to, kVector>(values).store(element_at<C.to>(params.to, element));
  }
}
