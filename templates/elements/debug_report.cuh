// How a debug kernel of the cache operations says what it found.
#pragma once

// Keeps the lowest index of all threads that report, whatever their order, with its value.
// value_of(index) reads the value; any thread may read any.
template <class ValueOf>
PAGEJIT_DEVICE void report_lowest(pagejit_shared::DebugFinding* finding, int index,
                                  ValueOf value_of) {
  int mine = index + 1;
  int seen = 0;
  while (true) {
    const int found = dev::atomic_cas(&finding->index_plus_one, seen, mine);
    if (found == seen) break;
    if (found <= mine) return;  // a lower one is there, or another thread reports this one
    seen = found;
  }
  // A thread with a higher index may have claimed before and write its value only now. So whoever
  // finds another index behind its own write writes that one's value.
  int now = mine;
  do {
    mine = now;
    dev::store_global(&finding->value, static_cast<long long>(value_of(mine - 1)));
    dev::fence_gpu();
    now = dev::load_global(&finding->index_plus_one);
  } while (now != mine);
}

// The slot of a token, or -1 after a report where it is neither in the cache nor says that its
// token is not written. Params has slot_mapping and num_blocks.
template <int kBlockSize, class Params>
PAGEJIT_DEVICE int64_t checked_slot(const Params& params, pagejit_shared::DebugFinding* bad_slot,
                                    int token, int64_t slot) {
  if (slot >= -1 && (slot < 0 || slot / kBlockSize < params.num_blocks)) return slot;
  report_lowest(bad_slot, token,
                [&](int i) { return dev::load_global_nc(params.slot_mapping + i); });
  return -1;
}
