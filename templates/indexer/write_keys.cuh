// Quantises the index keys of new tokens to e4m3, with a scale for each quant block, and writes
// both into their blocks.
#pragma once

using pagejit_shared::IndexKeyWriteConfig;
using pagejit_shared::IndexKeyWriteParams;

// The vectors of one token's quant block that this thread has.
template <IndexKeyWriteConfig C>
struct QuantRow {
  static constexpr int kVector = C.vector_elements;
  static constexpr int kStep = C.threads_per_row * kVector;

  const void* source;  // element 0 of the row
  int first_element;
  int end_element;  // 0 where there is no row

  // Calls visit(element, values).
  template <class Visit>
  PAGEJIT_DEVICE void for_each_vector(Visit visit) const {
    for (int element = first_element; element < end_element; element += kStep) {
      ElementBits<C.dtype, kVector> bits;
      bits.load_nc(element_at<C.dtype>(source, element));
      float values[kVector];
      widen<C.dtype, kVector>(bits, values);
      visit(element, values);
    }
  }
};

// The scale by which the greatest magnitude fills e4m3; a row of zeros has that of the least one
// that counts. All lanes of the warp take part.
template <IndexKeyWriteConfig C>
PAGEJIT_DEVICE float find_quant_scale(const QuantRow<C>& row) {
  constexpr float kGreatestCode = 448.0f;
  // The floor of the format.
  float greatest = 1e-4f;
  row.for_each_vector([&](int, const float(&values)[C.vector_elements]) {
#pragma unroll
    for (int i = 0; i < C.vector_elements; ++i) {
      greatest = dev::max2(greatest, values[i] < 0.0f ? -values[i] : values[i]);
    }
  });
#pragma unroll
  for (int mask = C.threads_per_row / 2; mask > 0; mask /= 2) {
    greatest = dev::max2(greatest, dev::shuffle_xor(greatest, mask));
  }
  const float scale = greatest / kGreatestCode;
  if constexpr (!C.is_power_of_two_scale) return scale;
  // Any digit behind the first takes it to the next power. The floor keeps it normal.
  constexpr uint32_t kDigits = 0x007fffffu;
  const uint32_t bits = __builtin_bit_cast(uint32_t, scale);
  return __builtin_bit_cast(float, (bits + kDigits) & ~kDigits);
}

template <IndexKeyWriteConfig C>
PAGEJIT_DEVICE void write_keys(const IndexKeyWriteParams& params) {
  constexpr int kRowsPerToken = C.head_size / C.quant_block_size;
  constexpr int kRowsPerCta = C.num_threads / C.threads_per_row;
  const int64_t row_idx = static_cast<int64_t>(dev::block_idx_x()) * kRowsPerCta +
                          dev::thread_idx() / C.threads_per_row;
  const int64_t token = row_idx / kRowsPerToken;
  const int quant_block = static_cast<int>(row_idx % kRowsPerToken);
  int64_t slot = -1;
  if (token < params.num_tokens) {
    const auto slot_at = [&](int i) { return dev::load_global_nc(params.slot_mapping + i); };
    if constexpr (C.debug) {
      slot = checked_slot<C.block_size>(params.num_blocks,
                                        &params.report->findings[pagejit_shared::kBadKeySlot],
                                        static_cast<int>(token), slot_at);
    } else {
      slot = slot_at(static_cast<int>(token));
    }
  }
  const int first_of_row = quant_block * C.quant_block_size;
  QuantRow<C> row;
  row.first_element = dev::thread_idx() % C.threads_per_row * C.vector_elements;
  row.end_element = slot < 0 ? 0 : C.quant_block_size;
  row.source =
      element_at<C.dtype>(params.k, slot < 0 ? 0 : token * params.k_stride_token + first_of_row);
  // All lanes of a warp take part in this, whether they have a row or not.
  const float scale = find_quant_scale<C>(row);
  if (slot < 0) return;

  const int64_t block = slot / C.block_size;
  const int64_t in_block = slot % C.block_size;
  uint8_t* block_start = static_cast<uint8_t*>(params.cache) + block * params.block_stride_bytes;
  if (row.first_element == 0) {
    float* scales = reinterpret_cast<float*>(
        block_start + pagejit_shared::index_scales_offset(C.block_size, C.head_size));
    dev::store_global(scales + in_block * kRowsPerToken + quant_block, scale);
  }
  uint8_t* codes = block_start + in_block * C.head_size + first_of_row;
  row.for_each_vector([&](int element, const float(&values)[C.vector_elements]) {
    float scaled[C.vector_elements];
#pragma unroll
    for (int i = 0; i < C.vector_elements; ++i) scaled[i] = values[i] / scale;
    narrow_to_codes<Element::kFloat8E4m3, C.vector_elements, C.has_float8_convert>(scaled).store(
        codes + element);
  });
}
