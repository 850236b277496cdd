// Which KV tokens query tokens see, by their positions.
#pragma once

// The KV tokens that a query token sees: [begin, end).
struct VisibleRange {
  int begin;
  int end;
};

// What the query tokens of one sequence see.
#if PAGEJIT_RANGES
//
// Ranges leave this an interval, since it and each range that counts hold the query token's own
// position. And later rows still see at least as far and begin no earlier: of two positions p < p',
// a range with p and not p' ends at or before p', which p' itself sees; one with p' and not p begins
// behind p, which p itself sees.
#endif
struct QuerySight {
  int first_position;  // of query token 0
  int seq_len;
  int left;  // KV tokens before and behind a position that it sees
  int right;
#if PAGEJIT_CHUNKS
  int chunk_size;
#endif
#if PAGEJIT_RANGES
  const int* ranges;  // of this sequence
  int num_ranges;
  int reach;           // `right` without causality
  bool within_window;  // what ranges show is cut off at the window or chunk
#endif

  // A row may begin to see behind token 0.
  static constexpr bool kHasBegin = kConfig.has_window || kConfig.has_chunks;

  PAGEJIT_DEVICE QuerySight(const AttentionParams& params, const AttentionWork& work)
      : first_position(work.seq_len - work.query_len), seq_len(work.seq_len) {
    constexpr int kAll = 0x7fffffff;
    left = right = kAll;
#if PAGEJIT_WINDOW
    if (params.window_left >= 0) left = params.window_left;
    if (params.window_right >= 0) right = params.window_right;
#endif
#if PAGEJIT_CHUNKS
    chunk_size = params.chunk_size;
#endif
#if PAGEJIT_RANGES
    ranges = params.bidirectional_ranges +
             work.seq_idx * static_cast<int64_t>(params.bidirectional_ranges_stride);
    num_ranges = params.num_bidirectional_ranges;
    reach = right;
    within_window = params.ranges_within_window != 0;
#endif
#if PAGEJIT_CAUSAL
    right = 0;
#endif
#if PAGEJIT_CAUSAL_FLAGS
    if (dev::load_global_nc(params.causal_flags + work.seq_idx) != 0) right = 0;
#endif
  }

  PAGEJIT_DEVICE int position(int row) const { return first_position + place_of_row(row).token; }

#if PAGEJIT_RANGES
  // Of several rows at once, so that each range is read once.
  template <int kRows>
  PAGEJIT_DEVICE void of_rows(const int (&rows)[kRows], VisibleRange (&seen)[kRows]) const {
#pragma unroll
    for (int n = 0; n < kRows; ++n) seen[n] = at_position(position(rows[n]), right);
#pragma unroll 1
    for (int i = 0; i < num_ranges; ++i) {
      const int begin = dev::load_global_nc(ranges + i * 2);
      const int end = dev::load_global_nc(ranges + i * 2 + 1);
      const int first = begin < 0 ? 0 : begin;
      const int last = end < seq_len ? end : seq_len;
#pragma unroll
      for (int n = 0; n < kRows; ++n) {
        const int at = position(rows[n]);
        if (at < begin || at >= end) continue;
        if (first < seen[n].begin) seen[n].begin = first;
        if (last > seen[n].end) seen[n].end = last;
      }
    }
    if (!within_window) return;
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      const VisibleRange limit = at_position(position(rows[n]), reach);
      if (seen[n].begin < limit.begin) seen[n].begin = limit.begin;
      if (seen[n].end > limit.end) seen[n].end = limit.end;
    }
  }

#else
  PAGEJIT_DEVICE VisibleRange of_row(int row) const { return at_position(position(row), right); }

#endif
  // Of all rows of a tile together, by its first and its last: later rows see as far and begin no
  // earlier.
  PAGEJIT_DEVICE VisibleRange of_tile(int first_row, int num_rows) const {
#if PAGEJIT_RANGES
    const int rows[2] = {first_row, first_row + num_rows - 1};
    VisibleRange seen[2];
    of_rows(rows, seen);
    return {seen[0].begin, seen[1].end};
#else
    return {of_row(first_row).begin, of_row(first_row + num_rows - 1).end};
#endif
  }

  // Of a query token at position `at` that sees so many tokens behind its own.
  PAGEJIT_DEVICE VisibleRange at_position(int at, int behind) const {
    // Without overflow: 0 <= left and behind, and a position is at least -2^31 + 1.
    int begin = left < at ? at - left : 0;
    int end = behind < seq_len - at ? at + behind + 1 : seq_len;
#if PAGEJIT_CHUNKS
    if (at < 0) return {0, 0};  // in a chunk before all keys
    const int in_chunk = at % chunk_size;
    begin = at - in_chunk;
    if (chunk_size - in_chunk < end - at) end = at + chunk_size - in_chunk;
#endif
    return {begin, end < 0 ? 0 : end};
  }
};
