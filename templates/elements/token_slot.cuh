// Where a token's rows go, and by what they turn. C and Params: those of a kernel that writes a
// cache.
#pragma once

// slot_at(index), or -1 in place of a bad one, which debug kernels report by `index`.
template <auto C, class Params, class SlotAt>
PAGEJIT_DEVICE int64_t load_slot(const Params& params, int index, SlotAt slot_at) {
  if constexpr (C.debug) {
    return checked_slot<C.block_size>(
        params.num_blocks, &params.report->findings[pagejit_shared::kBadSlot], index, slot_at);
  } else {
    return slot_at(index);
  }
}

// The token's row of cos_sin.
template <auto C, class Params>
PAGEJIT_DEVICE const void* find_cos_sin(const Params& params, int token) {
  if constexpr (C.rope == RopeStyle::kNone) return nullptr;
  int64_t position = dev::load_global_nc(params.positions + token);
  if constexpr (C.debug) {
    if (position < 0 || position >= params.max_position) {
      report_lowest(&params.report->findings[pagejit_shared::kBadPosition], token,
                    [&](int i) { return dev::load_global_nc(params.positions + i); });
      position = 0;
    }
  }
  return element_at<C.cos_sin>(params.cos_sin, position * C.rotary_dim);
}
