// Copies the tokens of sequences from their blocks to contiguous rows, one sequence behind the
// other, dequantised on the way.
#pragma once

using pagejit_shared::GatherCacheParams;
using pagejit_shared::KvLayout;
using pagejit_shared::KvScale;

template <GatherCacheConfig C>
struct SourceRow {
  static constexpr int kVector = C.vector_elements;
  static constexpr int kBytes = pagejit_shared::element_bytes(C.kv);
  using KvBits = ElementBits<C.kv, kVector>;

  const void* block;  // element 0 of the block and head
  int in_block;
  int64_t stride_token;
  bool is_value;

  PAGEJIT_DEVICE SourceRow(const GatherCacheParams& params, const TokenPlace& place, bool value,
                           int head)
      : in_block(place.in_block), is_value(value) {
    stride_token = value ? params.v_stride_token : params.k_stride_token;
    const int64_t first =
        place.block * (value ? params.v_stride_block : params.k_stride_block) +
        head * (value ? params.v_stride_head : params.k_stride_head);
    block = element_at<C.kv>(value ? params.v_cache : params.k_cache, first);
  }

  // Element 0 of the row, where the layout has rows.
  PAGEJIT_DEVICE const void* row() const {
    return element_at<C.kv>(block, in_block * stride_token);
  }

  PAGEJIT_DEVICE KvBits load(int element) const {
    KvBits bits = {};
    if constexpr (C.layout != KvLayout::kVllm) {
      bits.load_nc(element_at<C.kv>(row(), element));
    } else if (is_value) {
      const int64_t first = static_cast<int64_t>(element) * C.block_size + in_block;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        Bits<kBytes> one;
        one.load_nc(element_at<C.kv>(block, first + i * C.block_size));
        constexpr int kPerWord = kBytes < 4 ? 4 / kBytes : 1;
        bits.words[i / kPerWord] |= one.words[0] << (i % kPerWord * kBytes * 8 % 32);
      }
    } else {
      constexpr int kChunk = 16 / kBytes;
      const int64_t chunk = static_cast<int64_t>(element / kChunk) * C.block_size + in_block;
      bits.load_nc(element_at<C.kv>(block, chunk * kChunk + element % kChunk));
    }
    return bits;
  }
};

template <GatherCacheConfig C>
PAGEJIT_DEVICE ElementBits<C.out, C.vector_elements> from_cache(
    const ElementBits<C.kv, C.vector_elements>& bits, float scale) {
  if constexpr (C.scale == KvScale::kNone) {
    return convert_wide<C.kv, C.out, C.vector_elements>(bits);
  } else {
    return multiply_codes<C.kv, C.out, C.vector_elements>(bits, scale);
  }
}

template <GatherCacheConfig C>
PAGEJIT_DEVICE float load_scale(const GatherCacheParams& params, const TokenPlace& place,
                                bool is_value, int head) {
  if constexpr (C.scale == KvScale::kNone) return 1.0f;
  const float* scale = is_value ? params.v_scale : params.k_scale;
  int64_t at = 0;
  if constexpr (C.scale == KvScale::kHead) at = head;
  if constexpr (C.scale == KvScale::kTokenHead) {
    at = (place.block * C.block_size + place.in_block) * params.num_kv_heads + head;
  }
  return dev::load_global_nc(scale + at);
}

template <GatherCacheConfig C>
PAGEJIT_DEVICE void gather_cache(const GatherCacheParams& params) {
  const int num_rows = params.v_cache == nullptr ? params.num_kv_heads : 2 * params.num_kv_heads;
  const int group = dev::thread_idx() / C.threads_per_row;
  const int token_in_cta = params.tokens_per_cta > 1 ? group / num_rows : 0;
  const int64_t token_idx =
      static_cast<int64_t>(dev::block_idx_x()) * params.tokens_per_cta + token_in_cta;
  if (token_in_cta >= params.tokens_per_cta) return;  // has not all of its rows here
  // The grid is a bound; the sequences may have fewer tokens.
  if (token_idx >= dev::load_global_nc(params.cu_seq_lens + params.num_seqs)) return;
  const int token = static_cast<int>(token_idx);
  const TokenPlace place = find_place<C.block_size>(params, token);
  if constexpr (C.debug) {
    if (!check_place<C.block_size>(params, &params.report->findings[pagejit_shared::kBadTableBlock],
                                   token, place)) {
      return;
    }
  }
  const int row =
      dev::block_idx_y() * pagejit_shared::rows_per_cta(C) + group - token_in_cta * num_rows;
  if (row >= num_rows) return;
  const bool is_value = row >= params.num_kv_heads;
  const int head = is_value ? row - params.num_kv_heads : row;
  const SourceRow<C> source(params, place, is_value, head);
  const float scale = load_scale<C>(params, place, is_value, head);
  void* out = is_value ? params.v_out : params.k_out;
  const int64_t out_row =
      is_value ? token * params.v_out_stride_token + head * params.v_out_stride_head
               : token * params.k_out_stride_token + head * params.k_out_stride_head;
  const int end_element = is_value ? C.head_size_v : C.head_size;
  for (int element = dev::thread_idx() % C.threads_per_row * C.vector_elements;
       element < end_element; element += C.threads_per_row * C.vector_elements) {
    void* to = element_at<C.out>(out, out_row + element);
    if constexpr (C.layout == KvLayout::kDsMla) {
      load_ds_mla<C>(source.row(), element).store(to);
    } else {
      from_cache<C>(source.load(element), scale).store(to);
    }
  }
}
