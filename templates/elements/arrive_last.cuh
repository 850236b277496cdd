// How the CTAs that share a piece of work find the one that finishes it.
#pragma once

// Counts this CTA in; true in all threads of the last one of num_ctas, which then sees what the
// others wrote. The counter wraps to 0 by itself, ready for the next launch. One thread calls
// on_arrival(number of those before).
template <class OnArrival>
PAGEJIT_DEVICE bool arrive_last(uint32_t* counter, int num_ctas, int& shared_flag,
                                OnArrival on_arrival) {
  dev::sync_cta();  // all that this CTA wrote is there before one thread publishes it
  if (dev::thread_idx() == 0) {
    const uint32_t limit = static_cast<uint32_t>(num_ctas - 1);
    const uint32_t arrived = dev::atomic_inc_acq_rel(counter, limit);
    on_arrival(arrived);
    shared_flag = arrived == limit;
  }
  dev::sync_cta();  // the flag, and with it what the others wrote, are visible to all threads
  return shared_flag != 0;
}
