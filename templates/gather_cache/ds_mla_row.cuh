// Rows of 656 bytes of a latent cache: codes with a scale for 128 of them, then bf16.
#pragma once

using pagejit_shared::GatherCacheConfig;

// A vector of the row's kv_c and k_pe in the result's type. None crosses a border: all that differ
// lie at multiples of 128 elements.
template <GatherCacheConfig C>
PAGEJIT_DEVICE ElementBits<C.out, C.vector_elements> load_ds_mla(const void* row, int element) {
  constexpr int kVector = C.vector_elements;
  // A code is a byte.
  const int rope_element = element - pagejit_shared::kDsMlaScales;
  if (rope_element >= 0) {
    ElementBits<Element::kBFloat16, kVector> rope;
    rope.load_nc(
        element_at<Element::kBFloat16>(row, pagejit_shared::kDsMlaRope / 2 + rope_element));
    return convert_wide<Element::kBFloat16, C.out, kVector>(rope);
  }
  ElementBits<C.kv, kVector> codes;
  codes.load_nc(element_at<C.kv>(row, element));
  const int group = pagejit_shared::kDsMlaScales / 4 + element / pagejit_shared::kDsMlaGroup;
  const float scale = dev::load_global_nc(static_cast<const float*>(row) + group);
  return multiply_codes<C.kv, C.out, kVector>(codes, scale);
}
