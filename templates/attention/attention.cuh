// Paged attention over ragged queries, split-KV in one launch.
//
// A CTA serves a tile of rows of one (sequence, KV head) over one split of its tokens; see
// ../README.md for the schedule and the counts. K and V rows leave global memory once for all rows
// of the tile.
#pragma once

// One split: its tokens, then its rows into the result or the workspace.
PAGEJIT_DEVICE void serve_split(const AttentionParams& params, const AttentionWork& work,
                                AttentionShared& shared) {
  const int warp = dev::thread_idx() / 32;
  const int token_group = warp / kConfig.row_warps;
  const int row_warp = warp % kConfig.row_warps;
  OnlineSoftmax softmax;
  softmax.clear();
  attend(params, work, shared, softmax, token_group, row_warp);

  const AttentionOutput output(params, work);
  MergeBuffer& merge = shared.u.merge;
  const int num_units = output.num_units();
  // Each unit's token groups, then the splits of the units where this one is the last to arrive:
  // after all arrivals, so that no other CTA waits for this one's merging.
  uint32_t units_to_merge = 0;
#pragma unroll 1
  for (int turn = 0; turn < 2 * num_units; ++turn) {
    const bool of_splits = turn >= num_units;
    // Each split starts with another unit, so that splits which finish together are last at
    // different units.
    const int unit = (turn + work.split_idx) % num_units;
    if (!of_splits) {
      dev::sync_cta();  // the ring, or the unit before, has been read by all
      stage_unit(merge, softmax, unit, token_group, row_warp);
      dev::sync_cta();  // the unit is there for all
    } else if ((units_to_merge >> unit & 1) == 0) {
      continue;
    }
#if PAGEJIT_BATCH_INVARIANT
    merge_unit(output, merge, shared.totals, work, unit, of_splits);
#else
    merge_unit(output, merge, work, unit, of_splits);
#endif
    if (!of_splits && work.num_active_splits > 1 &&
        arrive_last_split(params, output, work, unit, merge.is_last_split)) {
      units_to_merge |= 1u << unit;
    }
  }
}

PAGEJIT_DEVICE void attention(const AttentionParams& params) {
  static_assert(sizeof(AttentionShared) == kConfig.shared_bytes,
                "host and device disagree on shared memory");
  auto& shared = *reinterpret_cast<AttentionShared*>(dev::dynamic_shared());

#if PAGEJIT_DEBUG
  auto* header = static_cast<pagejit_shared::WorkspaceHeader*>(params.workspace);
  const uint32_t magic = dev::load_global(&header->magic);
  if (magic != pagejit_shared::kWorkspaceMagic) {
    // Nothing in this memory can be trusted, so there is no compare-and-swap: one thread of the
    // grid writes.
    if (dev::block_idx_x() + dev::block_idx_y() + dev::block_idx_z() + dev::thread_idx() == 0) {
      dev::store_global(&header->debug_value, static_cast<long long>(magic));
      dev::store_global(&header->debug_code,
                        static_cast<int>(pagejit_shared::kDebugBadWorkspace));
    }
    return;
  }
#endif
  AttentionWork work;
  if (!find_work(params, work)) return;

#if PAGEJIT_BATCH_INVARIANT
  while (true) {
    serve_split(params, work, shared);
    if (!work.take_next_split(Traits::kTileTokens)) break;
    dev::sync_cta();  // the merge buffer, where the ring will be, has been read by all
    // Else q, masks and addresses would stay in registers while splits are merged, and spill.
    work.seq_idx = dev::opaque(work.seq_idx);
    work.query_begin = dev::opaque(work.query_begin);
    work.row_begin = dev::opaque(work.row_begin);
  }
#else
  serve_split(params, work, shared);
#endif
}
