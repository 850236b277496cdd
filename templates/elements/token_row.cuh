// Rows of tokens on their way into a cache: read as vectors, turned by their token's position where
// they rotate, and measured. C: the configuration of a kernel that writes a cache.
#pragma once

using pagejit_shared::RopeStyle;

// This thread's part of one row.
template <auto C>
struct Row {
  static constexpr int kVector = C.vector_elements;
  static constexpr int kStep = C.threads_per_row * C.vector_elements;
  using SourceBits = ElementBits<C.dtype, kVector>;

  const void* source;   // element 0
  const void* cos_sin;  // of the token's position; null: the row does not rotate
  int first_element;    // of this thread
  int end_element;      // 0 where there is no row

  PAGEJIT_DEVICE SourceBits load(int element) const {
    SourceBits bits;
    bits.load(element_at<C.dtype>(source, element));
    return bits;
  }

  template <int kCount>
  PAGEJIT_DEVICE void load_cos_sin(int element, float (&values)[kCount]) const {
    constexpr int kBytes = kCount * pagejit_shared::element_bytes(C.cos_sin);
    constexpr int kParts = kBytes > 16 ? kBytes / 16 : 1;
    constexpr int kPart = kCount / kParts;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      ElementBits<C.cos_sin, kPart> bits;
      bits.load_nc(element_at<C.cos_sin>(cos_sin, element + part * kPart));
      float some[kPart];
      widen<C.cos_sin, kPart>(bits, some);
#pragma unroll
      for (int i = 0; i < kPart; ++i) values[part * kPart + i] = some[i];
    }
  }

  // Calls visit(element, bits) for each vector of this thread, rotated and rounded to the source's
  // type.
  template <class Visit>
  PAGEJIT_DEVICE void for_each_vector(Visit visit) const {
    if constexpr (C.rope == RopeStyle::kNeox) {
      if (cos_sin != nullptr) return for_each_neox(visit);
    }
    for (int element = first_element; element < end_element; element += kStep) {
      SourceBits bits = load(element);
      if constexpr (C.rope == RopeStyle::kInterleaved) {
        if (cos_sin != nullptr && element < C.rotary_dim) bits = rotate_pairs(bits, element);
      }
      visit(element, bits);
    }
  }

 private:
  // Element i turns with element i + rotary_dim / 2; one thread does both, so that a row may be
  // rotated in place.
  template <class Visit>
  PAGEJIT_DEVICE void for_each_neox(Visit visit) const {
    constexpr int kHalf = C.rotary_dim / 2;
    const int half_end = end_element == 0 ? 0 : kHalf;
    for (int element = first_element; element < half_end; element += kStep) {
      float x[kVector], y[kVector], cos[kVector], sin[kVector];
      widen<C.dtype, kVector>(load(element), x);
      widen<C.dtype, kVector>(load(element + kHalf), y);
      load_cos_sin<kVector>(element, cos);
      load_cos_sin<kVector>(element + kHalf, sin);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float turned = x[i] * cos[i] - y[i] * sin[i];
        y[i] = y[i] * cos[i] + x[i] * sin[i];
        x[i] = turned;
      }
      visit(element, narrow<C.dtype, kVector>(x));
      visit(element + kHalf, narrow<C.dtype, kVector>(y));
    }
    for (int element = C.rotary_dim + first_element; element < end_element; element += kStep) {
      visit(element, load(element));
    }
  }

  // Element 2 i turns with element 2 i + 1.
  PAGEJIT_DEVICE SourceBits rotate_pairs(const SourceBits& bits, int element) const {
    constexpr int kPairs = kVector / 2;
    float v[kVector], cos[kPairs], sin[kPairs];
    widen<C.dtype, kVector>(bits, v);
    load_cos_sin<kPairs>(element / 2, cos);
    load_cos_sin<kPairs>(C.rotary_dim / 2 + element / 2, sin);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float turned = v[2 * i] * cos[i] - v[2 * i + 1] * sin[i];
      v[2 * i + 1] = v[2 * i + 1] * cos[i] + v[2 * i] * sin[i];
      v[2 * i] = turned;
    }
    return narrow<C.dtype, kVector>(v);
  }
};

// The greatest magnitude of the row; NaN does not count. All lanes of the warp take part.
template <auto C>
PAGEJIT_DEVICE float find_greatest(const Row<C>& row) {
  float greatest = 0.0f;
  row.for_each_vector([&](int, const ElementBits<C.dtype, C.vector_elements>& bits) {
    float values[C.vector_elements];
    widen<C.dtype, C.vector_elements>(bits, values);
#pragma unroll
    for (int i = 0; i < C.vector_elements; ++i) {
      greatest = dev::max2(greatest, values[i] < 0.0f ? -values[i] : values[i]);
    }
  });
#pragma unroll
  for (int mask = C.threads_per_row / 2; mask > 0; mask /= 2) {
    greatest = dev::max2(greatest, dev::shuffle_xor(greatest, mask));
  }
  return greatest;
}
