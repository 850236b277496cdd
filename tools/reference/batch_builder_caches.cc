// The part of BatchBuilder that lays out K and V and draws their tokens.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "tools/reference/batch_builder.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

constexpr int kNumLayers = 3;

}  // namespace

void BatchBuilder::make_caches() {
  lay_out_caches();
  for (KvAllocation& allocation : batch_.allocations) {
    allocation.data = ElementBuffer(spec().kv_dtype, batch_.num_blocks * allocation.block_extent,
                                    ElementBuffer::nan_code(spec().kv_dtype));
    allocation.device_block_stride =
        std::max(allocation.block_extent, batch_.options.device_block_stride);
  }
  if (spec().token_scales) lay_out_token_scales();
  for (auto* dense :
       {&batch_.dense_k, &batch_.dense_v, &batch_.dense_k_scale, &batch_.dense_v_scale}) {
    dense->resize(static_cast<size_t>(batch_.num_seqs));
  }
  for (int seq = 0; seq < batch_.num_seqs; ++seq) make_tokens(seq);
}

void BatchBuilder::lay_out_caches() {
  const int64_t heads = batch_.options.num_kv_heads;
  const int64_t tokens = spec().block_size;
  // K and V start at multiples of kv_alignment; rows too where a row's size is one, else at
  // multiples of what divides both.
  const int64_t element_bits = data_type_bits(spec().kv_dtype);
  const int64_t start_unit = int64_t{spec().kv_alignment} * 8 / element_bits;
  const int64_t row_unit = std::gcd(int64_t{spec().head_size}, start_unit);
  const int64_t tail = batch_.has_inline_scales()
                           ? int64_t{AttentionBatch::kInlineScaleBytes} * 8 / element_bits
                           : 0;
  const bool is_ds_mla = spec().kv_layout == KvLayout::kDsMla;
  const int64_t k_row = is_ds_mla ? kDsMlaRowBytes : spec().head_size + tail;
  const int64_t v_row = batch_.head_size_v() + tail;
  const auto padded = [&](int64_t row) {
    return ceil_div(heads * tokens * row, start_unit) * start_unit;
  };
  KvPlace& k = batch_.k_place;
  KvPlace& v = batch_.v_place;
  const auto one_allocation = [&](int64_t extent, int64_t k_offset, const KvStrides& k_strides,
                                  const KvStrides& v_strides) {
    batch_.allocations = {KvAllocation{{}, extent, 0}};
    k = {0, k_offset, k_strides};
    v = {0, k_offset + padded(k_row), v_strides};
  };
  const auto two_allocations = [&](const KvStrides& k_strides, const KvStrides& v_strides,
                                   int64_t offset) {
    batch_.allocations = {KvAllocation{{}, k_strides.block, 0},
                          KvAllocation{{}, v_strides.block, 0}};
    k = {0, offset, k_strides};
    v = {1, offset, v_strides};
  };
  const int64_t both = padded(k_row) + padded(v_row);
  if (spec().kv_layout == KvLayout::kVllm) {
    // [num_blocks, num_kv_heads, ...]; interleaved or with gaps behind heads and blocks where the
    // layout has that.
    const int64_t x = int64_t{16} * 8 / element_bits;
    const int64_t gap = batch_.options.layout == CacheLayout::kPadded ? row_unit : 0;
    const auto strides = [&](int64_t row) {
      const int64_t head_extent = row * tokens + gap;
      return KvStrides{heads * head_extent + 2 * gap, x, head_extent};
    };
    if (batch_.options.layout == CacheLayout::kInterleaved) {
      one_allocation(both, 0, {both, x, k_row * tokens}, {both, x, v_row * tokens});
    } else {
      two_allocations(strides(k_row), strides(v_row), 0);
    }
    k.chunk_elements = static_cast<int>(x);
    k.chunk_stride = tokens * x;
    v.strides.token = 1;
    v.chunk_elements = 1;
    v.chunk_stride = tokens;
    return;
  }
  const auto nhd = [&](int64_t row, int64_t block) { return KvStrides{block, heads * row, row}; };
  const auto hnd = [&](int64_t row, int64_t block) { return KvStrides{block, row, tokens * row}; };
  switch (batch_.options.layout) {
    case CacheLayout::kNhd:
      return two_allocations(nhd(k_row, heads * tokens * k_row), nhd(v_row, heads * tokens * v_row),
                             0);
    case CacheLayout::kHnd:
      return two_allocations(hnd(k_row, heads * tokens * k_row), hnd(v_row, heads * tokens * v_row),
                             0);
    case CacheLayout::kInterleaved:
      return one_allocation(both, 0, nhd(k_row, both), nhd(v_row, both));
    case CacheLayout::kLayered: {
      const int64_t extent = kNumLayers * both;
      return one_allocation(extent, both, hnd(k_row, extent), hnd(v_row, extent));
    }
    case CacheLayout::kPadded: {
      // Different gaps after each head, token and block of K and V. Those after a block hold what
      // the offset takes.
      const int64_t k_head = k_row + row_unit;
      const int64_t k_token = heads * k_head + 2 * row_unit;
      const int64_t v_token = v_row + 2 * row_unit;
      const int64_t v_head = tokens * v_token + row_unit;
      return two_allocations({tokens * k_token + 3 * row_unit, k_token, k_head},
                             {heads * v_head + 5 * row_unit, v_token, v_head}, start_unit);
    }
  }
}

// Those of K as [num_blocks, block_size, num_kv_heads], those of V as [num_blocks, num_kv_heads,
// block_size] with a gap behind each head.
void BatchBuilder::lay_out_token_scales() {
  const int64_t heads = batch_.options.num_kv_heads;
  const int64_t tokens = spec().block_size;
  if (batch_.has_inline_scales()) {
    const auto in_floats = [&](const KvStrides& strides) {
      const int64_t elements = 32 / data_type_bits(spec().kv_dtype);  // in a float's bytes
      return KvStrides{strides.block / elements, strides.token / elements, strides.head / elements};
    };
    batch_.k_scale_strides = in_floats(batch_.k_place.strides);
    batch_.v_scale_strides = in_floats(batch_.v_place.strides);
    return;
  }
  batch_.k_scale_strides = {tokens * heads, heads, 1};
  batch_.v_scale_strides = {heads * (tokens + 1), 1, tokens + 1};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  batch_.k_scale.assign(static_cast<size_t>(batch_.num_blocks * batch_.k_scale_strides.block),
                        kNan);
  batch_.v_scale.assign(static_cast<size_t>(batch_.num_blocks * batch_.v_scale_strides.block),
                        kNan);
}

void BatchBuilder::make_tokens(int seq) {
  const auto index = static_cast<size_t>(seq);
  const int64_t heads = batch_.options.num_kv_heads;
  const int64_t length = seq_len(seq);
  const Donor donor = donors_[index];
  const auto from = static_cast<size_t>(donor.seq);
  const int64_t num_shared = donor.num_blocks * spec().block_size;
  const auto make_rows = [&](std::vector<std::vector<float>>& all, int64_t row) {
    all[index].resize(static_cast<size_t>(heads * length * row));
  };
  make_rows(batch_.dense_k, spec().head_size);
  make_rows(batch_.dense_v, batch_.head_size_v());
  if (spec().token_scales) {
    make_rows(batch_.dense_k_scale, 1);
    make_rows(batch_.dense_v_scale, 1);
  }
  const int32_t* table_row = batch_.block_table.data() + seq * batch_.block_table_stride;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t token = 0; token < length; ++token) {
      if (token < num_shared) {
        const auto copy = [&](std::vector<std::vector<float>>& all, int64_t row) {
          std::copy_n(all[from].data() + (head * seq_len(donor.seq) + token) * row, row,
                      all[index].data() + (head * length + token) * row);
        };
        copy(batch_.dense_k, spec().head_size);
        copy(batch_.dense_v, batch_.head_size_v());
        if (spec().token_scales) {
          copy(batch_.dense_k_scale, 1);
          copy(batch_.dense_v_scale, 1);
        }
        continue;
      }
      const int64_t row = head * length + token;
      float* k_row = batch_.dense_k[index].data() + row * spec().head_size;
      float* v_row = batch_.dense_v[index].data() + row * batch_.head_size_v();
      const Slot slot = {table_row[token / spec().block_size], token % spec().block_size, head};
      if (spec().kv_layout == KvLayout::kDsMla) {
        make_ds_mla_row(slot, k_row);
        std::copy_n(k_row, batch_.head_size_v(), v_row);
        continue;
      }
      const ValueSource::TokenScales scales = values_.draw_k_and_v(rng_, head, k_row, v_row);
      store(batch_.k_place, slot, k_row, spec().head_size);
      if (spec().latent) {
        std::copy_n(k_row, batch_.head_size_v(), v_row);
        continue;  // what has V's place in other batches stays NaN
      }
      store(batch_.v_place, slot, v_row, batch_.head_size_v());
      if (spec().token_scales) {
        batch_.dense_k_scale[index][static_cast<size_t>(row)] = scales.k;
        batch_.dense_v_scale[index][static_cast<size_t>(row)] = scales.v;
        store_scale(batch_.k_place, batch_.k_scale, batch_.k_scale_strides, slot, scales.k,
                    spec().head_size);
        store_scale(batch_.v_place, batch_.v_scale, batch_.v_scale_strides, slot, scales.v,
                    batch_.head_size_v());
      }
    }
  }
}

// Stores a row of KvLayout::kDsMla; in `row` the elements have their scales.
void BatchBuilder::make_ds_mla_row(const Slot& slot, float* row) {
  const std::array<float, 4> scales = values_.draw_ds_mla(rng_, row);
  const int num_codes = batch_.head_size_v();
  store(batch_.k_place, slot, row, num_codes);
  ElementBuffer& data = batch_.allocations[static_cast<size_t>(batch_.k_place.allocation)].data;
  uint8_t* bytes = data.address(slot.first_element(batch_.k_place)) + num_codes;
  std::memcpy(bytes, scales.data(), sizeof scales);
  bytes += sizeof scales;
  for (int i = num_codes; i < spec().head_size; ++i, bytes += 2) {
    const auto code = static_cast<uint16_t>(encode_float(DataType::kBFloat16, row[i]));
    std::memcpy(bytes, &code, sizeof code);
  }
  const int num_scales = static_cast<int>(scales.size());
  for (int i = 0; i < num_codes; ++i) {
    row[i] *= scales[static_cast<size_t>(i / (num_codes / num_scales))];
  }
}

void BatchBuilder::store(const KvPlace& place, const Slot& slot, const float* row,
                         int row_elements) {
  ElementBuffer& data = batch_.allocations[static_cast<size_t>(place.allocation)].data;
  const int64_t first = slot.first_element(place);
  for (int i = 0; i < row_elements; ++i) data.set(first + place.element_offset(i), row[i]);
}

// Behind the row of so many elements where scales are in line, else at its place in `scales`.
void BatchBuilder::store_scale(const KvPlace& place, std::vector<float>& scales,
                               const KvStrides& strides, const Slot& slot, float scale,
                               int row_elements) {
  if (batch_.has_inline_scales()) {
    ElementBuffer& data = batch_.allocations[static_cast<size_t>(place.allocation)].data;
    std::memcpy(data.address(slot.first_element(place) + row_elements), &scale, sizeof scale);
    return;
  }
  const int64_t at =
      slot.block * strides.block + slot.token * strides.token + slot.head * strides.head;
  scales[static_cast<size_t>(at)] = scale;
}

}  // namespace pagejit
