// The indices of the k greatest values of each row, in rising order. One CTA does a row: it finds
// the least value that is taken by counting digits, then walks the row once more and writes. Where
// rows are few and long, several CTAs do a part each, and the last does the same with what they
// found.
#pragma once

using pagejit_shared::TopKCandidate;
using pagejit_shared::TopKConfig;
using pagejit_shared::TopKParams;
using pagejit_shared::TopKShared;

// A number in the order of the value: NaN below all, the two zeros the same.
PAGEJIT_DEVICE uint32_t order_key(float value) {
  if (!(value == value)) return 0;
  const uint32_t bits = __builtin_bit_cast(uint32_t, value + 0.0f);  // -0 becomes 0
  return bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}

// A row's values in vectors that are aligned in memory; the first and the last may lie across the
// row's ends.
template <TopKConfig C>
struct RowVectors {
  static constexpr int kVector = C.vector_elements;

  const float* logits;  // column 0
  RowRange range;
  int first;  // column of the first vector
  int count;  // vectors

  PAGEJIT_DEVICE RowVectors(const float* first_logit, const RowRange& row_range)
      : logits(first_logit), range(row_range) {
    first = range.begin / kVector * kVector;
    count = (range.end - first + kVector - 1) / kVector;
  }

  PAGEJIT_DEVICE bool holds(int column) const {
    return column >= range.begin && column < range.end;
  }

  // Calls visit(column, key) for each value of a vector that is in the row. Nothing beside the row
  // is read.
  template <class Visit>
  PAGEJIT_DEVICE void visit_keys(int vector, Visit visit) const {
    const int column = first + vector * kVector;
    Bits<kVector* 4> bits = {};
    if (holds(column) && holds(column + kVector - 1)) {
      bits.load_nc(logits + column);
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (holds(column + i)) {
          bits.words[i] =
              dev::load_global_nc(reinterpret_cast<const uint32_t*>(logits + column + i));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (!holds(column + i)) continue;
      visit(column + i, order_key(__builtin_bit_cast(float, bits.words[i])));
    }
  }
};

// What the parts of a row have found, one part behind the other: by rising index. A vector is one
// of them, and so is a column.
struct CandidateVectors {
  const TopKCandidate* candidates;
  int count;

  template <class Visit>
  PAGEJIT_DEVICE void visit_keys(int vector, Visit visit) const {
    visit(vector, dev::load_global(&candidates[vector].key));
  }
};

// The sum of the lanes before this one. All lanes take part.
PAGEJIT_DEVICE int sum_before_in_warp(int value) {
  int sum = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int before = dev::shuffle(sum, (dev::lane_idx() - distance) & 31);
    if (dev::lane_idx() >= distance) sum += before;
  }
  return sum - value;
}

// The sum of the warps before this one; `sums` are theirs.
PAGEJIT_DEVICE int sum_of_warps_before(const int (&sums)[pagejit_shared::kTopKMaxWarps]) {
  int sum = 0;
  for (int warp = 0; warp < dev::thread_idx() / 32; ++warp) sum += sums[warp];
  return sum;
}

// Which values are taken: of those whose upper digits are greater than `prefix` all, of those whose
// upper digits are the same the first num_tied.
struct Threshold {
  uint32_t prefix;
  int shift;
  int num_tied;
};

// Finds the digit of the value that has num_tied - 1 greater ones among those counted: the bin,
// from the top, in which the counts reach num_tied.
template <TopKConfig C>
PAGEJIT_DEVICE void choose_bin(TopKShared& shared, int num_tied) {
  constexpr int kBinsPerThread = pagejit_shared::kTopKBins / C.num_threads;
  // Thread 0 has the greatest digits.
  const int last_bin = pagejit_shared::kTopKBins - 1 - dev::thread_idx() * kBinsPerThread;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kBinsPerThread; ++i) sum += shared.counts[last_bin - i];
  const int before_in_warp = sum_before_in_warp(sum);
  if (dev::lane_idx() == 31) shared.warp_sums[0][dev::thread_idx() / 32] = before_in_warp + sum;
  dev::sync_cta();  // the sums of the warps are there
  int above = sum_of_warps_before(shared.warp_sums[0]) + before_in_warp;
  if (above >= num_tied || above + sum < num_tied) return;
  for (int bin = last_bin;; --bin) {
    const int count = shared.counts[bin];
    if (above + count >= num_tied) {
      shared.chosen_bin = bin;
      shared.num_above = above;
      return;
    }
    above += count;
  }
}

template <TopKConfig C, class Vectors>
PAGEJIT_DEVICE Threshold find_threshold(TopKShared& shared, const Vectors& row, int k) {
  Threshold threshold = {0, 32, k};
  for (int digit = 0; digit < pagejit_shared::kTopKDigits; ++digit) {
    const int shift = pagejit_shared::top_k_shift(digit);
    const int prefix_shift = threshold.shift;
    const uint32_t digit_mask = (1u << (prefix_shift - shift)) - 1;
    for (int bin = dev::thread_idx(); bin < pagejit_shared::kTopKBins; bin += C.num_threads) {
      shared.counts[bin] = 0;
    }
    dev::sync_cta();  // counts are cleared
    for (int vector = dev::thread_idx(); vector < row.count; vector += C.num_threads) {
      row.visit_keys(vector, [&](int, uint32_t key) {
        // The first digit has nothing above it, and a shift by 32 has no meaning.
        if (digit == 0 || key >> prefix_shift == threshold.prefix) {
          dev::atomic_add_shared(&shared.counts[key >> shift & digit_mask], 1);
        }
      });
    }
    dev::sync_cta();  // counts are complete
    choose_bin<C>(shared, threshold.num_tied);
    dev::sync_cta();  // the bin is chosen
    const int bin = shared.chosen_bin;
    const bool takes_all = shared.num_above + shared.counts[bin] == threshold.num_tied;
    threshold.num_tied -= shared.num_above;
    threshold.prefix = threshold.prefix << (prefix_shift - shift) | static_cast<uint32_t>(bin);
    threshold.shift = shift;
    dev::sync_cta();  // all have read, before the next digit clears
    if (takes_all) break;
  }
  return threshold;
}

// How many values of a vector are greater than the threshold's (in the lower half of the result)
// and how many are tied.
template <class Vectors>
PAGEJIT_DEVICE int count_taken(const Vectors& row, int vector, const Threshold& threshold) {
  int counts = 0;
  row.visit_keys(vector, [&](int, uint32_t key) {
    const uint32_t upper = key >> threshold.shift;
    counts += upper > threshold.prefix ? 1 : upper == threshold.prefix ? 1 << 16 : 0;
  });
  return counts;
}

// Calls take(place, column, key) for what is taken, place by place in the order of the columns.
// Each warp has a stretch of the row: it counts what it takes, then knows its first place.
template <TopKConfig C, class Vectors, class Take>
PAGEJIT_DEVICE void for_each_taken(TopKShared& shared, const Vectors& row,
                                   const Threshold& threshold, Take take) {
  constexpr int kWarps = C.num_threads / 32;
  const int warp = dev::thread_idx() / 32;
  const int rounds = (row.count + C.num_threads - 1) / C.num_threads;
  const int first = warp * rounds * 32 + dev::lane_idx();
  int greater = 0;
  int tied = 0;
  for (int round = 0; round < rounds; ++round) {
    const int vector = first + round * 32;
    const int counts = vector < row.count ? count_taken(row, vector, threshold) : 0;
    greater += counts & 0xffff;
    tied += counts >> 16;
  }
  greater = dev::sum_lanes(greater);
  tied = dev::sum_lanes(tied);
  static_assert(kWarps <= pagejit_shared::kTopKMaxWarps);
  if (dev::lane_idx() == 0) {
    shared.warp_sums[0][warp] = greater;
    shared.warp_sums[1][warp] = tied;
  }
  dev::sync_cta();  // the sums of the warps are there
  greater = sum_of_warps_before(shared.warp_sums[0]);
  tied = sum_of_warps_before(shared.warp_sums[1]);
  for (int round = 0; round < rounds; ++round) {
    const int vector = first + round * 32;
    const int counts = vector < row.count ? count_taken(row, vector, threshold) : 0;
    if (!dev::any(counts != 0)) continue;
    const int before = sum_before_in_warp(counts);
    int greater_before = greater + (before & 0xffff);
    int tied_before = tied + (before >> 16);
    if (counts != 0) {
      row.visit_keys(vector, [&](int column, uint32_t key) {
        const uint32_t upper = key >> threshold.shift;
        const bool is_tied = upper == threshold.prefix;
        if (upper < threshold.prefix) return;
        if (!is_tied || tied_before < threshold.num_tied) {
          // Of the tied ones before this one only so many were taken.
          const int tied_taken =
              tied_before < threshold.num_tied ? tied_before : threshold.num_tied;
          take(greater_before + tied_taken, column, key);
        }
        greater_before += !is_tied;
        tied_before += is_tied;
      });
    }
    const int last = dev::shuffle(before + counts, 31);
    greater += last & 0xffff;
    tied += last >> 16;
  }
}

// The greatest of what all parts have found.
template <TopKConfig C>
PAGEJIT_DEVICE void merge_parts(TopKShared& shared, const TopKCandidate* candidates, int parts,
                                int k, int* indices) {
  const CandidateVectors all = {candidates, parts * k};
  for_each_taken<C>(
      shared, all, find_threshold<C>(shared, all, k), [&](int place, int candidate, uint32_t) {
        dev::store_global(indices + place, dev::load_global(&candidates[candidate].index));
      });
}

template <TopKConfig C>
PAGEJIT_DEVICE void top_k(const TopKParams& params) {
  const int row_idx = dev::block_idx_x();
  const int split = dev::block_idx_y();
  if constexpr (C.debug) {
    if (split == 0 && dev::thread_idx() == 0) {
      check_range(params.ranges, params.report, row_idx, params.num_columns);
    }
  }
  const RowRange range = row_range(params.ranges, row_idx, params.num_columns);
  const int length = range.end - range.begin;
  const int parts = pagejit_shared::top_k_parts(length, params.k, params.num_splits);
  if (split >= parts) return;
  int* indices = params.indices + row_idx * params.indices_stride;
  if (length <= params.k) {
    for (int i = dev::thread_idx(); i < params.k; i += C.num_threads) {
      dev::store_global(indices + i, i < length ? i : -1);
    }
    return;
  }
  TopKShared& shared = *reinterpret_cast<TopKShared*>(dev::dynamic_shared());
  const auto border = [&](int part) {
    return range.begin + static_cast<int>(static_cast<int64_t>(length) * part / parts);
  };
  const RowVectors<C> row(params.logits + row_idx * params.logits_stride,
                          {border(split), border(split + 1)});
  const Threshold threshold = find_threshold<C>(shared, row, params.k);
  if (parts == 1) {
    for_each_taken<C>(shared, row, threshold, [&](int place, int column, uint32_t) {
      dev::store_global(indices + place, column - range.begin);
    });
    return;
  }
  TopKCandidate* candidates =
      params.candidates + static_cast<int64_t>(row_idx) * params.num_splits * params.k;
  TopKCandidate* mine = candidates + static_cast<int64_t>(split) * params.k;
  for_each_taken<C>(shared, row, threshold, [&](int place, int column, uint32_t key) {
    dev::store_global(mine + place, TopKCandidate{key, column - range.begin});
  });
  if (!arrive_last(params.counters + row_idx, parts, shared.is_last, [](uint32_t) {})) return;
  merge_parts<C>(shared, candidates, parts, params.k, indices);
}
