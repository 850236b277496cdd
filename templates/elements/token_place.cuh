// Where the tokens of sequences lie in a paged cache, for kernels that go through the tokens of all
// sequences one behind the other.
#pragma once

// The sequence of a token: the last one that begins at or before it. cu_seq_lens: [num_seqs + 1].
PAGEJIT_DEVICE int find_sequence(const int* cu_seq_lens, int num_seqs, int token) {
  int begin = 0;
  int end = num_seqs;
  while (end - begin > 1) {
    const int middle = begin + (end - begin) / 2;
    if (dev::load_global_nc(cu_seq_lens + middle) <= token) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return begin;
}

// A token's place in the cache.
struct TokenPlace {
  int64_t block;
  int in_block;
};

// Params has num_seqs, cu_seq_lens, seq_starts (null: all 0), block_table and its stride.
template <int kBlockSize, class Params>
PAGEJIT_DEVICE TokenPlace find_place(const Params& params, int token) {
  const int seq_idx = find_sequence(params.cu_seq_lens, params.num_seqs, token);
  int position = token - dev::load_global_nc(params.cu_seq_lens + seq_idx);
  if (params.seq_starts != nullptr) {
    position += dev::load_global_nc(params.seq_starts + seq_idx);
  }
  const int* blocks = params.block_table + seq_idx * params.block_table_stride;
  return {dev::load_global_nc(blocks + position / kBlockSize), position % kBlockSize};
}

// Whether a token's block is in the cache; else that of the lowest token is reported. Params has
// num_blocks too.
template <int kBlockSize, class Params>
PAGEJIT_DEVICE bool check_place(const Params& params, pagejit_shared::DebugFinding* bad_block,
                                int token, const TokenPlace& place) {
  if (place.block >= 0 && place.block < params.num_blocks) return true;
  report_lowest(bad_block, token, [&](int i) { return find_place<kBlockSize>(params, i).block; });
  return false;
}
