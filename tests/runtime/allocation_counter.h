// Counts what a thread allocates and locks, and makes its allocations fail. A program that has
// allocation_counter.cc has operator new and pthread_mutex_lock of its own, so none may be built
// with a sanitizer, which replace them too. Thread-safety: each thread counts its own; only one at
// a time may make those of others fail.
#pragma once

#include <utility>

namespace pagejit {

void start_counting();
// How often this thread called operator new and pthread_mutex_lock since.
std::pair<int, int> stop_counting();

// What `work` allocates and locks.
template <class Work>
std::pair<int, int> count(Work&& work) {
  start_counting();
  work();
  return stop_counting();
}

enum class Failing {
  kOne,      // one allocation fails; there is memory for what follows
  kAllAfter  // from one on all fail
};

// From the next allocation of this thread that `countdown` others precede, operator new throws.
void start_failing(Failing failing, int countdown);
// Whether an allocation failed since.
bool stop_failing();

// The same of all threads but this one, whose allocations are counted together.
void start_failing_elsewhere(Failing failing, int countdown);
bool stop_failing_elsewhere();

// Calls `attempt(n)` for n = 0, 1, ... until a call is through without a failure: in each, after
// start_failing(failing, n), it calls what is tested, and returns stop_failing(). The number of
// calls in which an allocation failed.
template <class Attempt>
int fail_each_allocation(Attempt&& attempt) {
  constexpr int kForever = 100'000;
  for (int n = 0; n < kForever; ++n) {
    if (!attempt(n)) return n;
  }
  return kForever;
}

}  // namespace pagejit
