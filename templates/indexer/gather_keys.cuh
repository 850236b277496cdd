// Copies the index keys of sequences from their blocks to contiguous rows, codes and scales apart,
// one sequence behind the other.
#pragma once

using pagejit_shared::IndexKeyGatherConfig;
using pagejit_shared::IndexKeyGatherParams;

template <IndexKeyGatherConfig C>
PAGEJIT_DEVICE void gather_keys(const IndexKeyGatherParams& params) {
  constexpr int kTokensPerCta = C.num_threads / C.threads_per_token;
  constexpr int kScales = C.head_size / C.quant_block_size;
  const int64_t token = static_cast<int64_t>(dev::block_idx_x()) * kTokensPerCta +
                        dev::thread_idx() / C.threads_per_token;
  // The grid is a bound; the sequences may have fewer tokens.
  if (token >= dev::load_global_nc(params.cu_seq_lens + params.num_seqs)) return;
  const TokenPlace place = find_place<C.block_size>(params, static_cast<int>(token));
  if constexpr (C.debug) {
    if (!check_place<C.block_size>(params, &params.report->findings[pagejit_shared::kBadKeyBlock],
                                   static_cast<int>(token), place)) {
      return;
    }
  }
  const uint8_t* block_start =
      static_cast<const uint8_t*>(params.cache) + place.block * params.block_stride_bytes;
  const uint8_t* codes = block_start + static_cast<int64_t>(place.in_block) * C.head_size;
  uint8_t* k_out = static_cast<uint8_t*>(params.k_out) + token * params.k_out_stride_token;
  const int first = dev::thread_idx() % C.threads_per_token;
  for (int at = first * C.vector_bytes; at < C.head_size;
       at += C.threads_per_token * C.vector_bytes) {
    Bits<C.vector_bytes> bits;
    bits.load_nc(codes + at);
    bits.store(k_out + at);
  }
  const uint8_t* first_scale =
      block_start + pagejit_shared::index_scales_offset(C.block_size, C.head_size);
  const float* scales = reinterpret_cast<const float*>(first_scale) +
                        static_cast<int64_t>(place.in_block) * kScales;
  for (int i = first; i < kScales; i += C.threads_per_token) {
    dev::store_global(params.scale_out + token * params.scale_out_stride_token + i,
                      dev::load_global_nc(scales + i));
  }
}
