// A token's row of the latent cache, and how its parts are stored there.
#pragma once

using pagejit_shared::MlaCacheWriteConfig;
using pagejit_shared::MlaCacheWriteParams;
using pagejit_shared::MlaFormat;

template <MlaCacheWriteConfig C>
struct LatentRow {
  using Bits = ElementBits<C.dtype, C.vector_elements>;

  void* row;

  PAGEJIT_DEVICE LatentRow(const MlaCacheWriteParams& params, int layer, int64_t slot) {
    void* cache = params.cache;
    if constexpr (C.grouped) cache = dev::load_global_nc(params.caches + layer);
    const int64_t block = slot / C.block_size;
    const int64_t in_block = slot - block * C.block_size;
    row = element_at<C.kv>(
        cache, block * params.cache_stride_block + in_block * params.cache_stride_token);
  }

  PAGEJIT_DEVICE void store_latent(int element, const Bits& bits, float scale) const {
    if constexpr (C.format == MlaFormat::kPlain) {
      bits.store(element_at<C.dtype>(row, element));
    } else {
      divide_to_codes<C.dtype, C.kv, C.vector_elements, C.has_float8_convert>(bits, scale)
          .store(element_at<C.kv>(row, element));
    }
  }

  PAGEJIT_DEVICE void store_rope(int element, const Bits& bits, float scale) const {
    if constexpr (C.format != MlaFormat::kDsMla) {
      store_latent(C.kv_lora_rank + element, bits, scale);
      return;
    }
    void* rope = element_at<Element::kBFloat16>(row, pagejit_shared::kDsMlaRope / 2 + element);
    convert_wide<C.dtype, Element::kBFloat16, C.vector_elements>(bits).store(rope);
  }

  PAGEJIT_DEVICE void store_scale(int part, float scale) const {
    dev::store_global(static_cast<float*>(row) + pagejit_shared::kDsMlaScales / 4 + part, scale);
  }
};
