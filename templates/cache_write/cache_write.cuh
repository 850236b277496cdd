// Writes the keys and values of new tokens into their slots of the cache, quantised and rotated as
// the configuration says; rotates q on the way.
#pragma once

// The row of cos_sin for a token.
template <CacheWriteConfig C>
PAGEJIT_DEVICE const void* find_cos_sin(const CacheWriteParams& params, int token) {
  if constexpr (C.rope == RopeStyle::kNone) return nullptr;
  int64_t position = dev::load_global_nc(params.positions + token);
  if constexpr (C.debug) {
    if (position < 0 || position >= params.max_position) {
      report_lowest(&params.report->findings[pagejit_shared::kBadPosition], token,
                    [&](int i) { return dev::load_global_nc(params.positions + i); });
      position = 0;
    }
  }
  return element_at<C.cos_sin>(params.cos_sin, position * C.rotary_dim);
}

// The scale that the caller gives for a head of K or V.
template <CacheWriteConfig C>
PAGEJIT_DEVICE float load_scale(const CacheWriteParams& params, bool is_value, int head) {
  const float* scale = is_value ? params.v_scale : params.k_scale;
  return dev::load_global_nc(scale + (C.scale == KvScale::kHead ? head : 0));
}

template <CacheWriteConfig C>
PAGEJIT_DEVICE void cache_write(const CacheWriteParams& params) {
  using Bits = ElementBits<C.dtype, C.vector_elements>;
  const int token = dev::block_idx_x();
  int64_t slot = dev::load_global_nc(params.slot_mapping + token);
  if constexpr (C.debug) {
    slot = checked_slot<C.block_size>(params, &params.report->findings[pagejit_shared::kBadSlot],
                                      token, slot);
  }
  const void* cos_sin = find_cos_sin<C>(params, token);

  const int num_kv_rows = 2 * params.num_kv_heads;
  const int num_rows = num_kv_rows + params.num_q_heads;
  const int row_idx = dev::block_idx_y() * pagejit_shared::rows_per_cta(C) +
                      dev::thread_idx() / C.threads_per_row;
  const bool is_query = row_idx >= num_kv_rows;
  const bool is_value = !is_query && row_idx >= params.num_kv_heads;
  // A token without a slot still has its q rotated.
  const bool exists = row_idx < num_rows && (is_query || slot >= 0);
  const int head =
      is_query ? row_idx - num_kv_rows : is_value ? row_idx - params.num_kv_heads : row_idx;

  Row<C> row;
  row.first_element = dev::thread_idx() % C.threads_per_row * C.vector_elements;
  row.end_element = !exists ? 0 : is_value ? C.head_size_v : C.head_size;
  row.cos_sin = is_value ? nullptr : cos_sin;
  const void* base = is_query ? params.q : is_value ? params.value : params.key;
  const int64_t stride_token = is_query   ? params.q_stride_token
                               : is_value ? params.value_stride_token
                                          : params.key_stride_token;
  const int64_t stride_head = is_query   ? params.q_stride_head
                              : is_value ? params.value_stride_head
                                         : params.key_stride_head;
  const int64_t source_offset = token * stride_token + head * stride_head;
  row.source = element_at<C.dtype>(base, exists ? source_offset : 0);

  float scale = 1.0f;
  // All lanes of a warp take part in this, whether they have a row or not.
  if constexpr (C.scale == KvScale::kTokenHead) scale = find_scale<C>(row);
  if (!exists) return;

  if (C.rope != RopeStyle::kNone && is_query) {
    row.for_each_vector([&](int element, const Bits& bits) {
      bits.store(element_at<C.dtype>(params.q, source_offset + element));
    });
    return;
  }
  if constexpr (C.scale == KvScale::kTokenHead) {
    if (row.first_element == 0) {
      float* scales = is_value ? params.v_scale : params.k_scale;
      dev::store_global(scales + slot * params.num_kv_heads + head, scale);
    }
  } else if constexpr (C.scale != KvScale::kNone) {
    scale = load_scale<C>(params, is_value, head);
  }
  const CacheRow<C> cache_row(params, is_value, head, slot);
  row.for_each_vector([&](int element, const Bits& bits) {
    cache_row.store(element, to_cache<C>(bits, scale));
  });
}
