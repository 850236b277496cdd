// The logits of an indexer: logits[row, n] = scale[n] * sum over heads of weights[row, head] *
// max(q[row, head] . k[n], 0).
//
// A CTA has some rows of one sequence, and a range of columns; a warp has tiles of columns, whose
// keys it holds in registers as the a operands of all products. q lies in shared memory as their b
// operands. Fragment places as in the PTX ISA, for lane = 4 * r + c.
#pragma once

using pagejit_shared::IndexLogitsConfig;
using pagejit_shared::IndexLogitsParams;

constexpr float kMinusInfinity = __builtin_bit_cast(float, 0xff800000u);

// The b operands of two steps along the head: for each the places {2c, 2c + 1} and {2c + 8, 2c +
// 9}.
struct alignas(16) QueryPair {
  F16Quad steps[2];
};

// Of the two heads whose products a lane has.
struct alignas(8) WeightPair {
  float v[2];
};

template <IndexLogitsConfig C>
struct LogitsTraits {
  static constexpr int kHeadTiles = C.num_heads / 8;
  static constexpr int kSteps = C.head_size / 16;  // a word of codes of each lane
  static constexpr int kTileTokens = C.token_tiles * 16;
  static constexpr int kWarps = C.num_threads / 32;
  static constexpr int kWordsPerVector = C.vector_bytes / 4;
};

template <IndexLogitsConfig C>
struct LogitsShared {
  QueryPair q[C.rows_per_cta][LogitsTraits<C>::kHeadTiles][LogitsTraits<C>::kSteps / 2][32];
  WeightPair weights[C.rows_per_cta][C.num_heads / 2];
  RowRange ranges[C.rows_per_cta];
};

// What a CTA does.
struct LogitsWork {
  int seq_idx;
  int first_row;
  int num_rows;
  // Columns of this CTA, and those of them that any of its rows has.
  int chunk_begin, chunk_end;
  int begin, end;
};

// ---- Keys ----

// The block of a key. Only of keys that a row has.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE int key_block(const IndexLogitsParams& params, int seq_idx, int key) {
  return dev::load_global_nc(params.block_table + seq_idx * params.block_table_stride +
                             key / C.block_size);
}

// From the first to the last column that any of the rows has; empty where they have none.
// range_of(i) is that of the i-th row.
template <class RangeOf>
PAGEJIT_DEVICE RowRange union_of(const IndexLogitsParams& params, int num_rows, RangeOf range_of) {
  RowRange all = {params.column_begin + params.num_columns, params.column_begin};
  for (int i = 0; i < num_rows; ++i) {
    const RowRange range = range_of(i);
    if (range.begin == range.end) continue;
    if (range.begin < all.begin) all.begin = range.begin;
    if (range.end > all.end) all.end = range.end;
  }
  if (all.begin < params.column_begin) all.begin = params.column_begin;
  return all;
}

// The first bad block of a sequence and its place in the table, as one number.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE int64_t find_bad_block(const IndexLogitsParams& params, int seq_idx) {
  const RowRange all = union_of(params, params.rows_per_seq, [&](int i) {
    return row_range(params.ranges, seq_idx * params.rows_per_seq + i,
                     params.column_begin + params.num_columns);
  });
  for (int key = all.begin; key < all.end; key += C.block_size - key % C.block_size) {
    const int block = key_block<C>(params, seq_idx, key);
    if (block < 0 || block >= params.num_blocks) {
      return static_cast<int64_t>(key / C.block_size) << 32 | static_cast<uint32_t>(block);
    }
  }
  return 0;
}

// Where a key and its scale are; null where its block is bad.
struct KeyPlace {
  const uint8_t* codes;
  const float* scale;
};

// Of a key that no row has: that of the next one that a row has, so that whole tiles are read and
// nothing that may hold anything. Only rows' own columns are written.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE KeyPlace find_key(const IndexLogitsParams& params, const LogitsWork& work, int key) {
  key = key < work.begin ? work.begin : key < work.end ? key : work.end - 1;
  const auto* keys = static_cast<const uint8_t*>(params.k);
  if constexpr (C.block_size == 0) {
    return {keys + key * params.k_stride, params.k_scale + key};
  } else {
    const int block = key_block<C>(params, work.seq_idx, key);
    if constexpr (C.debug) {
      if (block < 0 || block >= params.num_blocks) {
        report_lowest(&params.report->findings[pagejit_shared::kBadIndexBlock], work.seq_idx,
                      [&](int i) { return find_bad_block<C>(params, i); });
        return {nullptr, nullptr};
      }
    }
    const uint8_t* block_start = keys + block * params.k_stride;
    const int64_t in_block = key % C.block_size;
    const auto* scales = reinterpret_cast<const float*>(
        block_start + pagejit_shared::index_scales_offset(C.block_size, C.head_size));
    return {block_start + in_block * C.head_size, scales + in_block};
  }
}

// The codes of one key that a lane has. Lanes 4r to 4r + 3 share a key; each takes whole vectors.
// The words of four codes are those of the steps, in their order, and q's words go with them (the
// order of a sum's terms does not matter).
template <IndexLogitsConfig C>
struct KeyWords {
  static constexpr int kVectors = LogitsTraits<C>::kSteps / LogitsTraits<C>::kWordsPerVector;

  Bits<C.vector_bytes> vectors[kVectors];

  PAGEJIT_DEVICE void load(const uint8_t* codes) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      vectors[i] = {};
      if (C.debug && codes == nullptr) continue;
      vectors[i].load_nc(codes + (i * 4 + dev::lane_idx() % 4) * C.vector_bytes);
    }
  }

  PAGEJIT_DEVICE uint32_t step(int i) const {
    constexpr int kWords = LogitsTraits<C>::kWordsPerVector;
    return vectors[i / kWords].words[i % kWords];
  }
};

// The a operands of a tile of keys. Lane 4r + c has keys r and r + 8.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE void widen_keys(uint32_t (&a)[LogitsTraits<C>::kSteps][4],
                               const KeyWords<C> (&keys)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int step = 0; step < LogitsTraits<C>::kSteps; ++step) {
      const F16Quad values = unpack_e4m3(keys[half].step(step));
      a[step][half] = values.low;
      a[step][half + 2] = values.high;
    }
  }
}

// ---- Queries ----

// Converts q of the rows and puts it where the lanes take it from; copies the weights.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE void stage_queries(LogitsShared<C>& shared, const IndexLogitsParams& params,
                                  const LogitsWork& work) {
  using Traits = LogitsTraits<C>;
  constexpr int kWordsPerHead = C.head_size / 4;
  const auto* q = static_cast<const uint8_t*>(params.q);
  for (int at = dev::thread_idx(); at < work.num_rows * C.num_heads * kWordsPerHead;
       at += C.num_threads) {
    const int word = at % kWordsPerHead;
    const int head = at / kWordsPerHead % C.num_heads;
    const int row = at / kWordsPerHead / C.num_heads;
    const int64_t first =
        (work.first_row + row) * params.q_stride_row + head * params.q_stride_head;
    const uint32_t codes =
        dev::load_global_nc(reinterpret_cast<const uint32_t*>(q + first + word * 4));
    // Which lane and which step have this word of a key: see KeyWords.
    const int c = word / Traits::kWordsPerVector % 4;
    const int step = word / Traits::kWordsPerVector / 4 * Traits::kWordsPerVector +
                     word % Traits::kWordsPerVector;
    shared.q[row][head / 8][step / 2][head % 8 * 4 + c].steps[step % 2] = unpack_e4m3(codes);
  }
  for (int at = dev::thread_idx(); at < work.num_rows * C.num_heads; at += C.num_threads) {
    const int row = at / C.num_heads;
    const int head = at % C.num_heads;
    shared.weights[row][head / 2].v[head % 2] =
        dev::load_global_nc(params.weights + (work.first_row + row) * params.weights_stride + head);
  }
}

// ---- Products ----

// The sums over the heads for the keys r and r + 8 of each tile; lanes of one r have parts of them.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE void add_heads(float (&sums)[C.token_tiles][2], const LogitsShared<C>& shared,
                              int row,
                              const uint32_t (&a)[C.token_tiles][LogitsTraits<C>::kSteps][4]) {
  using Traits = LogitsTraits<C>;
#pragma unroll 1
  for (int head_tile = 0; head_tile < Traits::kHeadTiles; ++head_tile) {
    float products[C.token_tiles][4] = {};
#pragma unroll
    for (int pair = 0; pair < Traits::kSteps / 2; ++pair) {
      const QueryPair b = shared.q[row][head_tile][pair][dev::lane_idx()];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int tile = 0; tile < C.token_tiles; ++tile) {
          dev::mma_m16n8k16_f16(products[tile], a[tile][pair * 2 + i], b.steps[i].low,
                                b.steps[i].high);
        }
      }
    }
    const WeightPair weights = shared.weights[row][head_tile * 4 + dev::lane_idx() % 4];
#pragma unroll
    for (int tile = 0; tile < C.token_tiles; ++tile) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sums[tile][e / 2] += weights.v[e % 2] * dev::max2(products[tile][e], 0.0f);
      }
    }
  }
}

// One tile of keys: its logits for each row.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE void do_tile(const LogitsShared<C>& shared, const IndexLogitsParams& params,
                            const LogitsWork& work, int first_key) {
  using Traits = LogitsTraits<C>;
  // A lane reads the keys r + 8 * i, and finishes that with i = c.
  constexpr int kKeys = C.token_tiles * 2;
  const int c = dev::lane_idx() % 4;
  const int first_of_lane = first_key + dev::lane_idx() / 4;
  KeyPlace places[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) places[i] = find_key<C>(params, work, first_of_lane + i * 8);
  KeyWords<C> words[C.token_tiles][2];
  const float* scale_at = places[0].scale;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    words[i / 2][i % 2].load(places[i].codes);
    if (i == c) scale_at = places[i].scale;
  }
  const bool exists = c < kKeys && (!C.debug || scale_at != nullptr);
  const float scale = exists ? dev::load_global_nc(scale_at) : 0.0f;
  const int key = first_of_lane + c * 8;
  uint32_t a[C.token_tiles][Traits::kSteps][4];
#pragma unroll
  for (int tile = 0; tile < C.token_tiles; ++tile) widen_keys<C>(a[tile], words[tile]);
#pragma unroll 1
  for (int row = 0; row < work.num_rows; ++row) {
    float sums[C.token_tiles][2] = {};
    add_heads<C>(sums, shared, row, a);
    float mine = 0.0f;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      float sum = sums[i / 2][i % 2];
      sum += dev::shuffle_xor(sum, 1);
      sum += dev::shuffle_xor(sum, 2);
      if (i == c) mine = sum;
    }
    const RowRange range = shared.ranges[row];
    if (exists && key >= range.begin && key < range.end) {
      dev::store_global(
          params.logits + (work.first_row + row) * params.logits_stride + key - params.column_begin,
          mine * scale);
    }
  }
}

// -inf for what the rows do not have.
template <IndexLogitsConfig C>
PAGEJIT_DEVICE void clean(const LogitsShared<C>& shared, const IndexLogitsParams& params,
                          const LogitsWork& work) {
  for (int row = 0; row < work.num_rows; ++row) {
    const RowRange range = shared.ranges[row];
    float* logits = params.logits + (work.first_row + row) * params.logits_stride;
    for (int key = work.chunk_begin + dev::thread_idx(); key < work.chunk_end;
         key += C.num_threads) {
      if (key >= range.begin && key < range.end) continue;
      dev::store_global(logits + key - params.column_begin, kMinusInfinity);
    }
  }
}

template <IndexLogitsConfig C>
PAGEJIT_DEVICE LogitsWork find_work(LogitsShared<C>& shared, const IndexLogitsParams& params) {
  LogitsWork work;
  const int groups = (params.rows_per_seq + C.rows_per_cta - 1) / C.rows_per_cta;
  const int row_of_seq = dev::block_idx_x() % groups * C.rows_per_cta;
  work.seq_idx = dev::block_idx_x() / groups;
  work.first_row = work.seq_idx * params.rows_per_seq + row_of_seq;
  work.num_rows = params.rows_per_seq - row_of_seq;
  if (work.num_rows > C.rows_per_cta) work.num_rows = C.rows_per_cta;
  const int end_column = params.column_begin + params.num_columns;
  constexpr int kChunk = pagejit_shared::columns_per_cta(C);
  work.chunk_begin = params.column_begin + dev::block_idx_y() * kChunk;
  work.chunk_end = end_column - work.chunk_begin < kChunk ? end_column : work.chunk_begin + kChunk;
  if (dev::thread_idx() < work.num_rows) {
    const int row = work.first_row + dev::thread_idx();
    if constexpr (C.debug && C.block_size == 0) {
      check_range(params.ranges, params.report, row, params.num_keys);
    }
    shared.ranges[dev::thread_idx()] = row_range(params.ranges, row, end_column);
  }
  dev::sync_cta();  // ranges are there
  const RowRange all = union_of(params, work.num_rows, [&](int i) { return shared.ranges[i]; });
  work.begin = all.begin;
  work.end = all.end;
  if (work.begin < work.chunk_begin) work.begin = work.chunk_begin;
  if (work.end > work.chunk_end) work.end = work.chunk_end;
  return work;
}

template <IndexLogitsConfig C>
PAGEJIT_DEVICE void index_logits(const IndexLogitsParams& params) {
  using Traits = LogitsTraits<C>;
  auto& shared = *reinterpret_cast<LogitsShared<C>*>(dev::dynamic_shared());
  const LogitsWork work = find_work(shared, params);
  if constexpr (C.cleans) clean(shared, params, work);
  if (work.begin >= work.end) return;
  stage_queries(shared, params, work);
  dev::sync_cta();  // q and the weights are there
  for (int tile = dev::thread_idx() / 32; tile < C.tiles_per_warp * Traits::kWarps;
       tile += Traits::kWarps) {
    const int first_key = work.chunk_begin + tile * Traits::kTileTokens;
    if (first_key >= work.end) break;
    if (first_key + Traits::kTileTokens <= work.begin) continue;
    do_tile(shared, params, work, first_key);
  }
}
