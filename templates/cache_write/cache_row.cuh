// Where a row goes in the cache, and how it is stored there.
#pragma once

using pagejit_shared::CacheWriteConfig;
using pagejit_shared::CacheWriteParams;
using pagejit_shared::KvLayout;
using pagejit_shared::KvScale;

template <CacheWriteConfig C>
struct CacheRow {
  static constexpr int kVector = C.vector_elements;

  uint8_t* cache;      // K or V
  int64_t block_base;  // element 0 of the block and head
  int64_t row_base;    // element 0 of the row, where the layout has rows
  int in_block;        // token of the block
  bool is_value;

  PAGEJIT_DEVICE CacheRow(const CacheWriteParams& params, bool value, int head, int64_t slot)
      : is_value(value) {
    const int64_t block = slot / C.block_size;
    in_block = static_cast<int>(slot - block * C.block_size);
    cache = static_cast<uint8_t*>(value ? params.v_cache : params.k_cache);
    block_base = block * (value ? params.v_stride_block : params.k_stride_block) +
                 head * (value ? params.v_stride_head : params.k_stride_head);
    row_base = block_base + in_block * (value ? params.v_stride_token : params.k_stride_token);
  }

  PAGEJIT_DEVICE void* at(int64_t element) const {
    return element_at<C.kv>(cache, element);
  }

  PAGEJIT_DEVICE void store(int element, const ElementBits<C.kv, kVector>& bits) const {
    if constexpr (C.layout == KvLayout::kRows) {
      bits.store(at(row_base + element));
    } else if (is_value) {
      const int64_t first = block_base + static_cast<int64_t>(element) * C.block_size + in_block;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        bits.template element<pagejit_shared::element_bytes(C.kv)>(i).store(
            at(first + i * C.block_size));
      }
    } else {
      constexpr int kChunk = pagejit_shared::chunk_elements(C);
      const int64_t chunk = static_cast<int64_t>(element / kChunk) * C.block_size + in_block;
      bits.store(at(block_base + chunk * kChunk + element % kChunk));
    }
  }
};

// The source's bits as the cache's, divided by the row's scale.
template <CacheWriteConfig C>
PAGEJIT_DEVICE ElementBits<C.kv, C.vector_elements> to_cache(
    const ElementBits<C.dtype, C.vector_elements>& bits, float scale) {
  if constexpr (C.scale == KvScale::kNone) {
    return bits;
  } else {
    return divide_to_codes<C.dtype, C.kv, C.vector_elements, C.has_float8_convert>(bits, scale);
  }
}

// The greatest magnitude that the cache's type holds.
template <CacheWriteConfig C>
PAGEJIT_DEVICE constexpr float greatest_code() {
  if constexpr (C.kv == Element::kInt4) return 7.0f;
  return C.kv == Element::kInt8 ? 127.0f : C.kv == Element::kFloat8E4m3 ? 448.0f : 57344.0f;
}

// The scale by which the greatest magnitude of the row fills the cache's type; 1 for a row of
// zeros. All lanes of the warp take part.
template <CacheWriteConfig C>
PAGEJIT_DEVICE float find_scale(const Row<C>& row) {
  const float greatest = find_greatest<C>(row);
  return greatest == 0.0f ? 1.0f : greatest / greatest_code<C>();
}
