// Copies whole blocks within each of several caches, by pairs (from, to).
#pragma once

using pagejit_shared::CopyBlocksConfig;
using pagejit_shared::CopyBlocksParams;

PAGEJIT_DEVICE int64_t load_block(const CopyBlocksParams& params, int pair, int side) {
  return dev::load_global_nc(params.pairs + static_cast<int64_t>(pair) * 2 + side);
}

// Whether the order of the copies would matter: the target of this pair is another's target, or any
// pair's source. All threads of the CTA find the same.
PAGEJIT_DEVICE bool overlaps(const CopyBlocksParams& params, int pair, int64_t to) {
  for (int other = 0; other < params.num_pairs; ++other) {
    if (load_block(params, other, 0) == to) return true;
    if (other != pair && load_block(params, other, 1) == to) return true;
  }
  return false;
}

// What a debug kernel looks at before a copy. False: it is left out.
PAGEJIT_DEVICE bool may_copy(const CopyBlocksParams& params, int pair, int64_t from, int64_t to) {
  using pagejit_shared::CopyBlocksFault;
  int fault = -1;
  if (from < 0 || from >= params.num_blocks) {
    fault = CopyBlocksFault::kBadSourceBlock;
  } else if (to < 0 || to >= params.num_blocks) {
    fault = CopyBlocksFault::kBadTargetBlock;
  } else if (overlaps(params, pair, to)) {
    fault = CopyBlocksFault::kOverlap;
  }
  if (fault < 0) return true;
  const int side = fault == CopyBlocksFault::kBadSourceBlock ? 0 : 1;
  report_lowest(&params.report->findings[fault], pair,
                [&](int i) { return load_block(params, i, side); });
  return false;
}

template <CopyBlocksConfig C>
PAGEJIT_DEVICE void copy_blocks(const CopyBlocksParams& params) {
  const int pair = dev::block_idx_x();
  const int64_t from = load_block(params, pair, 0);
  const int64_t to = load_block(params, pair, 1);
  if constexpr (C.debug) {
    if (!may_copy(params, pair, from, to)) return;
  }
  auto* cache = static_cast<uint8_t*>(dev::load_global_nc(params.caches + dev::block_idx_y()));
  const uint8_t* source = cache + from * params.block_stride_bytes;
  uint8_t* target = cache + to * params.block_stride_bytes;

  constexpr int kRound = C.num_threads * C.vector_bytes;
  const int64_t first =
      static_cast<int64_t>(dev::block_idx_z()) * pagejit_shared::part_bytes(C) +
      dev::thread_idx() * C.vector_bytes;
  Bits<C.vector_bytes> bits[C.copies_per_thread];
#pragma unroll
  for (int i = 0; i < C.copies_per_thread; ++i) {
    const int64_t at = first + i * kRound;
    if (at < params.block_bytes) bits[i].load(source + at);
  }
#pragma unroll
  for (int i = 0; i < C.copies_per_thread; ++i) {
    const int64_t at = first + i * kRound;
    if (at < params.block_bytes) bits[i].store(target + at);
  }
}
