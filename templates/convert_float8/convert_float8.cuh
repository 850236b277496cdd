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
  if constexpr (pagejit_shared::element_bytes(C.to) == 1) {
    divide_to_codes<C.from, C.to, kVector, C.has_float8_convert>(bits, params.scale)
        .store(element_at<C.to>(params.to, element));
  } else {
    multiply_codes<C.from, C.to, kVector>(bits, params.scale)
        .store(element_at<C.to>(params.to, element));
  }
}
