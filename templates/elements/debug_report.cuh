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

// slot_at(index), or -1 after a report where that is neither in a cache of so many blocks nor says
// that its token is not written.
template <int kBlockSize, class SlotAt>
PAGEJIT_DEVICE int64_t checked_slot(int64_t num_blocks, pagejit_shared::DebugFinding* bad_slot,
                                    int index, SlotAt slot_at) {
  const int64_t slot = slot_at(index);
  if (slot >= -1 && (slot < 0 || slot / kBlockSize < num_blocks)) return slot;
  report_lowest(bad_slot, index, slot_at);
  return -1;
}
