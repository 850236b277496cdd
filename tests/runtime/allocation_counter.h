// Counts what a thread allocates and locks. A program that has allocation_counter.cc has operator
// new and pthread_mutex_lock of its own, so none may be built with a sanitizer, which replace them
// too. Thread-safety: each thread counts its own.
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

}  // namespace pagejit
