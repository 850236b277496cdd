// Writes the latent rows of new tokens into their slots of the cache, quantised and rotated as the
// configuration says; rotates q_pe on the way.
#pragma once

// The scale of a part of kv_c in a row of kDsMla. All lanes of the warp take part; `is_latent`:
// whether the row is one.
template <MlaCacheWriteConfig C>
PAGEJIT_DEVICE float find_group_scale(Row<C> row, bool is_latent) {
  constexpr float kGreatestCode = 448.0f;
  constexpr float kLeast = 1.17549435e-38f;  // the least normal number
  if (!is_latent) row.end_element = 0;
  return dev::max2(find_greatest<C>(row) / kGreatestCode, kLeast);
}

// The slot of a token of a layer; `index`: layer * num_tokens + token.
template <MlaCacheWriteConfig C>
PAGEJIT_DEVICE int64_t slot_at(const MlaCacheWriteParams& params, int index) {
  if constexpr (!C.grouped) return dev::load_global_nc(params.slot_mapping + index);
  const int layer = index / params.num_tokens;
  return dev::load_global_nc(params.slot_mapping + layer * params.slot_stride_layer + index -
                             layer * params.num_tokens);
}

template <MlaCacheWriteConfig C>
PAGEJIT_DEVICE void mla_cache_write(const MlaCacheWriteParams& params) {
  using Bits = ElementBits<C.dtype, C.vector_elements>;
  const int token = dev::block_idx_x();
  const int layer = C.grouped ? dev::block_idx_z() : 0;
  const int64_t slot = load_slot<C>(params, layer * params.num_tokens + token,
                                    [&](int i) { return slot_at<C>(params, i); });
  const void* cos_sin = find_cos_sin<C>(params, token);

  constexpr int kCached = pagejit_shared::cached_parts(C);
  const int part =
      dev::block_idx_y() * pagejit_shared::rows_per_cta(C) + dev::thread_idx() / C.threads_per_row;
  const bool is_latent = part < pagejit_shared::latent_parts(C);
  const bool is_query = part >= kCached;
  // A token without a slot still has its q_pe rotated.
  const bool exists = part < kCached + params.num_q_heads && (is_query || slot >= 0);
  const int first = is_latent ? part * pagejit_shared::kDsMlaGroup : 0;  // element of kv_c

  Row<C> row;
  row.first_element = dev::thread_idx() % C.threads_per_row * C.vector_elements;
  const int rest = C.kv_lora_rank - first;
  const int part_elements = rest < pagejit_shared::kDsMlaGroup ? rest : pagejit_shared::kDsMlaGroup;
  row.end_element = !exists ? 0 : is_latent ? part_elements : C.rotary_dim;
  row.cos_sin = is_latent ? nullptr : cos_sin;
  const void* base = is_query ? params.q_pe : is_latent ? params.kv_c : params.k_pe;
  const int64_t stride_token = is_query    ? params.q_pe_stride_token
                               : is_latent ? params.kv_c_stride_token
                                           : params.k_pe_stride_token;
  const int64_t within = is_query ? (part - kCached) * params.q_pe_stride_head : first;
  const int64_t stride_layer = is_latent ? params.kv_c_stride_layer : params.k_pe_stride_layer;
  const int64_t source_offset = layer * stride_layer + token * stride_token + within;
  row.source = element_at<C.dtype>(base, exists ? source_offset : 0);

  float scale = 1.0f;
  // All lanes of a warp take part in this, whether they have a row or not.
  if constexpr (C.format == MlaFormat::kDsMla) scale = find_group_scale<C>(row, is_latent);
  if (!exists) return;

  if (C.rope != RopeStyle::kNone && is_query) {
    row.for_each_vector([&](int element, const Bits& bits) {
      bits.store(element_at<C.dtype>(params.q_pe, source_offset + element));
    });
    return;
  }
  if constexpr (C.format == MlaFormat::kE4m3) scale = dev::load_global_nc(params.scale + layer);
  const LatentRow<C> latent_row(params, layer, slot);
  if (C.format == MlaFormat::kDsMla && is_latent && row.first_element == 0) {
    latent_row.store_scale(part, scale);
  }
  row.for_each_vector([&](int element, const Bits& bits) {
    if (is_latent) {
      latent_row.store_latent(first + element, bits, scale);
    } else {
      latent_row.store_rope(element, bits, scale);
    }
  });
}
