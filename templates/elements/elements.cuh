// Elements of any type in global memory, as vectors of f32: loading, widening, rounding, storing.
// Everything is unrolled, so that vectors live in registers.
#pragma once

using pagejit_shared::Element;

// kBytes of global memory (1, 2, 4, 8 or 16, aligned to their number), the first byte lowest.
template <int kBytes>
struct Bits {
  uint32_t words[kBytes < 4 ? 1 : kBytes / 4];

  struct Words {
    uint32_t v[kBytes < 4 ? 1 : kBytes / 4];
  };

  PAGEJIT_DEVICE void load(const void* p) {
    if constexpr (kBytes == 1) {
      words[0] = dev::load_global(static_cast<const uint8_t*>(p));
    } else if constexpr (kBytes == 2) {
      words[0] = dev::load_global(static_cast<const uint16_t*>(p));
    } else {
      const Words loaded = dev::load_global(static_cast<const Words*>(p));
#pragma unroll
      for (int i = 0; i < kBytes / 4; ++i) words[i] = loaded.v[i];
    }
  }

  // For memory that nobody writes during the launch.
  PAGEJIT_DEVICE void load_nc(const void* p) {
    if constexpr (kBytes == 1) {
      words[0] = dev::load_global_nc(static_cast<const uint8_t*>(p));
    } else if constexpr (kBytes == 2) {
      words[0] = dev::load_global_nc(static_cast<const uint16_t*>(p));
    } else {
      const Words loaded = dev::load_global_nc(static_cast<const Words*>(p));
#pragma unroll
      for (int i = 0; i < kBytes / 4; ++i) words[i] = loaded.v[i];
    }
  }

  PAGEJIT_DEVICE void store(void* p) const {
    if constexpr (kBytes == 1) {
      dev::store_global(static_cast<uint8_t*>(p), static_cast<uint8_t>(words[0]));
    } else if constexpr (kBytes == 2) {
      dev::store_global(static_cast<uint16_t*>(p), static_cast<uint16_t>(words[0]));
    } else {
      Words stored;
#pragma unroll
      for (int i = 0; i < kBytes / 4; ++i) stored.v[i] = words[i];
      dev::store_global(static_cast<Words*>(p), stored);
    }
  }

  // Element i of kElementBytes.
  template <int kElementBytes>
  PAGEJIT_DEVICE Bits<kElementBytes> element(int i) const {
    constexpr int kPerWord = kElementBytes < 4 ? 4 / kElementBytes : 1;
    return {{words[i / kPerWord] >> (i % kPerWord * kElementBytes * 8 % 32)}};
  }

  PAGEJIT_DEVICE uint16_t half(int i) const {
    return static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
  }
};

// The address of an element, of int4 one of even index.
template <Element E>
PAGEJIT_DEVICE const void* element_at(const void* base, int64_t index) {
  return static_cast<const uint8_t*>(base) + pagejit_shared::elements_bytes(E, index);
}
template <Element E>
PAGEJIT_DEVICE void* element_at(void* base, int64_t index) {
  return static_cast<uint8_t*>(base) + pagejit_shared::elements_bytes(E, index);
}

template <Element E, int kCount>
using ElementBits = Bits<kCount / pagejit_shared::elements_per_unit(E) *
                         pagejit_shared::element_bytes(E)>;

template <Element E, int kCount>
PAGEJIT_DEVICE void widen(const ElementBits<E, kCount>& bits, float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (E == Element::kFloat32) {
      values[i] = __builtin_bit_cast(float, bits.words[i]);
    } else if constexpr (E == Element::kBFloat16) {
      values[i] = __builtin_bit_cast(float, static_cast<uint32_t>(bits.half(i)) << 16);
    } else {
      values[i] = dev::unpack_f16(bits.half(i));
    }
  }
}

// Rounds to nearest even.
template <Element E, int kCount>
PAGEJIT_DEVICE ElementBits<E, kCount> narrow(const float (&values)[kCount]) {
  ElementBits<E, kCount> bits;
  if constexpr (E == Element::kFloat32) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) bits.words[i] = __builtin_bit_cast(uint32_t, values[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float high = i + 1 < kCount ? values[i + 1 < kCount ? i + 1 : i] : 0.0f;
      bits.words[i / 2] = E == Element::kBFloat16 ? dev::pack_bf16x2(values[i], high)
                                                  : dev::pack_f16x2(values[i], high);
    }
  }
  return bits;
}

// From one wide type to another, or bit for bit to the same.
template <Element From, Element To, int kCount>
PAGEJIT_DEVICE ElementBits<To, kCount> convert_wide(const ElementBits<From, kCount>& bits) {
  if constexpr (From == To) {
    return bits;
  } else {
    float values[kCount];
    widen<From, kCount>(bits, values);
    return narrow<To, kCount>(values);
  }
}
