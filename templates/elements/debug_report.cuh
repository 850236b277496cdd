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
