// Putting partial results together: the token groups of a CTA through shared memory, then the
// splits of a sequence through the workspace. Both combine (maximum, sum, accumulators) triples in
// a fixed order, so that a result does not depend on timing.
#pragma once

// Four consecutive elements of a 16-bit type.
struct alignas(8) HalfQuad {
  uint32_t word[2];
};

#if PAGEJIT_OUT_F32
using OutElement = float;
PAGEJIT_DEVICE Quad round_to_out(const Quad& x) { return x; }
#elif PAGEJIT_OUT_FP8
using OutElement = uint8_t;  // a code of e4m3
PAGEJIT_DEVICE uint32_t round_to_out(const Quad& x) {
#if PAGEJIT_FP8_CONVERT
  const uint32_t high = dev::pack_e4m3x2(x.v[2], x.v[3]);
  return dev::pack_e4m3x2(x.v[0], x.v[1]) | high << 16;
#else
  return round_to_e4m3(x.v[0]) | round_to_e4m3(x.v[1]) << 8 | round_to_e4m3(x.v[2]) << 16 |
         round_to_e4m3(x.v[3]) << 24;
#endif
}
#else
using OutElement = uint16_t;  // the 16 bits of an f16 or a bf16
PAGEJIT_DEVICE HalfQuad round_to_out(const Quad& x) {
#if PAGEJIT_OUT_BF16
  return {{dev::pack_bf16x2(x.v[0], x.v[1]), dev::pack_bf16x2(x.v[2], x.v[3])}};
#else
  return {{dev::pack_f16x2(x.v[0], x.v[1]), dev::pack_f16x2(x.v[2], x.v[3])}};
#endif
}
#endif

// Where the results of one CTA's rows go: those of one sequence and KV head.
struct AttentionOutput {
  static constexpr int kPartialRows = pagejit_shared::partial_rows(kConfig);
  static constexpr int kPartialRowBytes = pagejit_shared::partial_row_bytes(kConfig.head_size_v);

  const AttentionParams& params;
  int query_begin;  // the sequence's first query token
  int first_head;   // of this KV head's query heads
  int row_begin;    // the CTA's first row
  int num_rows;
  int sequence_head;  // of the launch's sequences (or row tiles) x KV heads
  float scale_log2;   // of differences of maxima; positive
#if PAGEJIT_KV_HEAD_SCALES || PAGEJIT_OUT_FP8
  float result_scale;  // from weighted codes of V to what is rounded
#endif

  PAGEJIT_DEVICE AttentionOutput(const AttentionParams& p, const AttentionWork& work)
      : params(p),
        query_begin(work.query_begin),
        first_head(work.kv_head_idx * kConfig.group_size),
        row_begin(work.row_begin),
        num_rows(work.num_rows),
        scale_log2(score_scale_log2(p, work)) {
#if PAGEJIT_SPLIT_ROW_TILES
    sequence_head = work.row_tile * p.num_kv_heads + work.kv_head_idx;
#elif PAGEJIT_GROUP_TILES
    sequence_head =
        work.seq_idx * p.num_kv_heads * pagejit_shared::group_tiles(kConfig) + dev::block_idx_y();
#else
    sequence_head = work.seq_idx * p.num_kv_heads + work.kv_head_idx;
#endif
#if PAGEJIT_KV_HEAD_SCALES || PAGEJIT_OUT_FP8
    result_scale = 1.0f;
#endif
#if PAGEJIT_KV_HEAD_SCALES
    result_scale = work.v_scale;
#endif
#if PAGEJIT_OUT_FP8
    result_scale /= dev::load_global_nc(p.out_scale);
#endif
  }

  // A row's partial result of a split. As many as there may be (kMergeCounterCapacity, kMaxSplits)
  // are counted in 32 bits.
  PAGEJIT_DEVICE unsigned char* partial(int split, int row) const {
    const uint32_t index =
        static_cast<uint32_t>((sequence_head * params.num_splits + split) * kPartialRows + row);
    return static_cast<unsigned char*>(params.workspace) + pagejit_shared::kPartialsOffset +
           index * static_cast<int64_t>(kPartialRowBytes);
  }
  PAGEJIT_DEVICE uint32_t* counter(int unit) const {
    return reinterpret_cast<uint32_t*>(static_cast<unsigned char*>(params.workspace) +
                                       pagejit_shared::kCountersOffset) +
           (sequence_head * pagejit_shared::merge_units(kPartialRows) + unit);
  }
  // Merge units that have rows.
  PAGEJIT_DEVICE int num_units() const {
    if (kPartialRows <= pagejit_shared::kMergeUnitRows) return 1;  // known to the compiler
    return pagejit_shared::merge_units(num_rows);
  }
  // Rows of a merge unit; the last one may have fewer.
  PAGEJIT_DEVICE int rows_of_unit(int unit) const {
    const int rows_left = num_rows - unit * pagejit_shared::kMergeUnitRows;
    return rows_left < pagejit_shared::kMergeUnitRows ? rows_left : pagejit_shared::kMergeUnitRows;
  }
};

// A running (maximum, sum, 4 accumulators).
struct Partial {
  float row_max = kMinusInfinity;
  float row_sum = 0.0f;
  Quad acc = {};

  // Adds a batch; a missing one is {-inf, 0} with any finite accumulators. Maxima are scores: the
  // weights are 2^(difference * scale_log2).
  template <int kCount>
  PAGEJIT_DEVICE void add(const PartialStats (&stats)[kCount], const Quad (&others)[kCount],
                          float scale_log2) {
    float new_max = row_max;
#pragma unroll
    for (int i = 0; i < kCount; ++i) new_max = dev::max2(new_max, stats[i].row_max);
    // Where there is no token at all any finite reference makes the weights 0; -inf would make NaN.
    const float reference = new_max == kMinusInfinity ? 0.0f : new_max;
    const float mine = dev::exp2_approx((row_max - reference) * scale_log2);
    row_max = new_max;
    row_sum *= mine;
#pragma unroll
    for (int e = 0; e < 4; ++e) acc.v[e] *= mine;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float theirs = dev::exp2_approx((stats[i].row_max - reference) * scale_log2);
      row_sum += stats[i].row_sum * theirs;
#pragma unroll
      for (int e = 0; e < 4; ++e) acc.v[e] += others[i].v[e] * theirs;
    }
  }

  PAGEJIT_DEVICE void add_split(const PartialStats& stats, const Quad& other, float scale_log2) {
    const PartialStats batch[1] = {stats};
    const Quad others[1] = {other};
    add(batch, others, scale_log2);
  }
};

#if PAGEJIT_SINKS
// The sink takes part in the sum, without a value.
PAGEJIT_DEVICE void add_sink(const AttentionOutput& output, int head, Partial& partial) {
  const float* sinks = output.params.sinks + output.first_head;
  const float logit = dev::load_global_nc(sinks + head) * kLog2E / output.scale_log2;
  partial.add_split({logit, 1.0f}, {}, output.scale_log2);
}

#endif
// Writes 4 elements of the final result of a row of the CTA, and its lse with the first ones.
PAGEJIT_DEVICE void store_result(const AttentionOutput& output, int row, int element,
                                 Partial partial) {
  const RowPlace place = place_of_row(output.row_begin + row);
#if PAGEJIT_SINKS
  add_sink(output, place.head, partial);
#endif
  // A sum of 0 means no token, or none above -inf: out = 0, lse = -inf. A NaN stays one.
  float factor = partial.row_sum == 0.0f ? 0.0f : dev::rcp_approx(partial.row_sum);
#if PAGEJIT_KV_HEAD_SCALES || PAGEJIT_OUT_FP8
  factor *= output.result_scale;
#endif
  const auto result =
      round_to_out({{partial.acc.v[0] * factor, partial.acc.v[1] * factor,
                     partial.acc.v[2] * factor, partial.acc.v[3] * factor}});
  const AttentionParams& params = output.params;
  const int64_t token = output.query_begin + place.token;
  const int64_t head = output.first_head + place.head;
  OutElement* start = static_cast<OutElement*>(params.out) + token * params.out_stride_token +
                      head * params.out_stride_head;
  dev::store_global(reinterpret_cast<decltype(round_to_out({}))*>(start + element), result);
  if (element == 0 && params.lse != nullptr) {
    const float lse_log2 =
        partial.row_max * output.scale_log2 + dev::log2_approx(partial.row_sum);
    const int64_t num_heads = params.num_kv_heads * kConfig.group_size;
    dev::store_global(params.lse + token * num_heads + head, kLn2 * lse_log2);
  }
}

#if !PAGEJIT_LATENT
// Puts one unit's rows into shared memory, as far as this warp has them.
PAGEJIT_DEVICE void stage_unit(MergeBuffer& merge, const OnlineSoftmax& softmax, int unit,
                               int token_group, int row_warp) {
  const int result_row = dev::lane_idx() / 4;
  const int column = dev::lane_idx() % 4 * 2;
#pragma unroll
  for (int j = 0; j < kConfig.row_tiles; ++j) {
    const int first_row =
        row_warp * Traits::kWarpRows + j * 8 - unit * pagejit_shared::kMergeUnitRows;
    if (first_row < 0 || first_row >= Traits::kMergeRows) continue;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + column + h;
      if (result_row == 0) {
        merge.groups.stats[token_group][row] = {softmax.row_max[j][h], softmax.row_sum[j][h]};
      }
#pragma unroll
      for (int depth = 0; depth < Traits::kValueTiles; ++depth) {
        float* acc = merge.groups.acc[token_group][row];
        acc[result_element(depth, result_row, false)] = softmax.acc[depth][j][h];
        acc[result_element(depth, result_row, true)] = softmax.acc[depth][j][h + 2];
      }
    }
  }
}

#endif
#if PAGEJIT_BATCH_INVARIANT
// Adds a split that is done in turn to those before it, as sum_of_splits() adds one that has a CTA
// of its own; gives the sum.
PAGEJIT_DEVICE Partial add_to_totals(const AttentionOutput& output, SplitTotals& totals,
                                     const AttentionWork& work, int row, int element,
                                     const Partial& split) {
  auto& acc = *reinterpret_cast<Quad*>(&totals.acc[row][element]);
  Partial total;
  if (work.turn > 0) {
    const PartialStats stats = totals.stats[work.turn % 2][row];
    total = {stats.row_max, stats.row_sum, acc};
  }
  total.add_split({split.row_max, split.row_sum}, split.acc, output.scale_log2);
  acc = total.acc;
  if (element == 0) totals.stats[(work.turn + 1) % 2][row] = {total.row_max, total.row_sum};
  return total;
}

#endif
// The sum of a row's token groups, four elements of it.
PAGEJIT_DEVICE Partial sum_of_groups(const GroupPartials& groups, int row, int element,
                                     float scale_log2) {
  PartialStats stats[Traits::kPartialGroups];
  Quad acc[Traits::kPartialGroups];
#pragma unroll
  for (int group = 0; group < Traits::kPartialGroups; ++group) {
    stats[group] = groups.stats[group][row];
    acc[group] = *reinterpret_cast<const Quad*>(&groups.acc[group][row][element]);
  }
  Partial sum;
  sum.add(stats, acc, scale_log2);
  return sum;
}

// The sum of a row's splits, in their order. A thread copies what it adds through shared memory, so
// that many splits share one trip to the L2; nobody else reads these copies, so there is no barrier.
PAGEJIT_DEVICE Partial sum_of_splits(const AttentionOutput& output, SplitBatch& batch, int thread,
                                     int row, int element, int num_splits) {
  constexpr int kBatch = Traits::kSplitsAtOnce;
  // The next splits' rows are at constant distances.
  const unsigned char* partial = output.partial(0, row);
  const int acc_offset = pagejit_shared::kPartialAccOffset + element * 4;
  Partial sum;
#pragma unroll 1
  for (int left = num_splits; left > 0; left -= kBatch) {
    const int count = left < kBatch ? left : kBatch;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      dev::cp_async_8(&batch.stats[i][thread], partial, true);
      dev::cp_async_16(&batch.acc[i][thread], partial + acc_offset, true);
      partial += output.kPartialRows * output.kPartialRowBytes;
    }
    dev::cp_async_commit();
    dev::cp_async_wait<0>();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      sum.add_split(batch.stats[i][thread], batch.acc[i][thread], output.scale_log2);
    }
  }
  return sum;
}

// Merges one unit's partial results: those of this CTA's token groups, into the result or, where the
// sequence has several splits, into the workspace; or those of the splits, into the result.
PAGEJIT_DEVICE void merge_unit(const AttentionOutput& output, MergeBuffer& merge,
#if PAGEJIT_BATCH_INVARIANT
                               SplitTotals& totals,
#endif
                               const AttentionWork& work, int unit, bool of_splits) {
  constexpr int kRowQuads = kConfig.head_size_v / 4;
  // Opaque: else addresses are found before the loop over tokens, and kept.
  const int thread = dev::opaque(dev::thread_idx());
#pragma unroll 1
  for (int i = thread; i < output.rows_of_unit(unit) * kRowQuads; i += Traits::kThreads) {
    const int row_in_unit = i / kRowQuads;
    const int row = unit * pagejit_shared::kMergeUnitRows + row_in_unit;
    const int element = i % kRowQuads * 4;
    Partial partial;
    if (of_splits) {
      partial = sum_of_splits(output, merge.splits, thread, row, element, work.num_active_splits);
    } else {
      partial = sum_of_groups(merge.groups, row_in_unit, element, output.scale_log2);
    }
#if PAGEJIT_BATCH_INVARIANT
    if (work.splits_in_turn > 1) {
      partial = add_to_totals(output, totals, work, row, element, partial);
    }
    if (work.turn + 1 < work.splits_in_turn) continue;
#endif
    if (of_splits || work.num_active_splits <= 1) {
      store_result(output, row, element, partial);
    } else {
      unsigned char* to = output.partial(work.split_idx, row);
      dev::store_global(
          reinterpret_cast<Quad*>(to + pagejit_shared::kPartialAccOffset + element * 4),
          partial.acc);
      if (element == 0) {
        dev::store_global(reinterpret_cast<PartialStats*>(to),
                          PartialStats{partial.row_max, partial.row_sum});
      }
    }
  }
}

// Counts this split in at the unit's counter; true in all threads of the CTA that comes last.
PAGEJIT_DEVICE bool arrive_last_split(const AttentionParams& params, const AttentionOutput& output,
                                      const AttentionWork& work, int unit, int& shared_flag) {
  return arrive_last(
      output.counter(unit), work.num_active_splits, shared_flag, [&](uint32_t arrived) {
#if PAGEJIT_DEBUG
        if (arrived >= static_cast<uint32_t>(work.num_active_splits)) {
          report_debug(params, pagejit_shared::kDebugBadCounter, work.seq_idx, unit, arrived);
        }
#endif
      });
}
