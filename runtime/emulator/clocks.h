// Clocks: who knows of whose accesses, for the checkers. Each thread of a CTA has a vector clock
// over the CTA's threads; what it has learnt of other CTAs through atomics is kept as their clocks
// at the time of release. Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace pagejit_emulator {

// A thread's access at a time: thread in the upper 10 bits, clock below. 0 = none (clocks start at
// 1).
struct Epoch {
  static constexpr int kClockBits = 22;
  uint32_t bits = 0;

  static Epoch of(int thread, uint32_t clock) {
    return {static_cast<uint32_t>(thread) << kClockBits | clock};
  }
  bool exists() const { return bits != 0; }
  int thread() const { return static_cast<int>(bits >> kClockBits); }
  uint32_t clock() const { return bits & ((1u << kClockBits) - 1); }
};

using VectorClock = std::vector<uint32_t>;

// CTA number -> its clock as it was released. Immutable and shared: it changes at atomics only.
using Knowledge = std::map<uint64_t, std::shared_ptr<const VectorClock>>;
using KnowledgePtr = std::shared_ptr<const Knowledge>;

KnowledgePtr unite(const KnowledgePtr& a, const KnowledgePtr& b);

// The clocks of one CTA.
class Clocks {
 public:
  void reset(uint64_t cta, int num_threads);

  uint64_t cta() const { return cta_; }
  Epoch now(int thread) const { return Epoch::of(thread, row(thread)[thread]); }
  // Whether `thread` knows of what another thread of this CTA did at `epoch`.
  bool knows(int thread, Epoch epoch) const { return row(thread)[epoch.thread()] >= epoch.clock(); }
  // The same for a thread of any CTA.
  bool knows(int thread, uint64_t cta, Epoch epoch) const;

  // A barrier: all of `threads` learn what any of them knows.
  void join(const std::vector<int>& threads);

  // Atomics and fences at GPU scope. `location` is what earlier atomics released at the address;
  // null = nothing.
  void acquire(int thread, const KnowledgePtr& location);
  // What follows in the thread is later and not released.
  KnowledgePtr release(int thread);
  // Relaxed atomics, ordered by fences before and after them.
  void fence(int thread);
  void relaxed_read(int thread, const KnowledgePtr& location);
  KnowledgePtr relaxed_write(int thread) const { return at_fence_[thread]; }

 private:
  const uint32_t* row(int thread) const { return &clocks_[size_t{num_threads_} * thread]; }
  uint32_t* row(int thread) { return &clocks_[size_t{num_threads_} * thread]; }

  uint64_t cta_ = 0;
  unsigned num_threads_ = 0;
  std::vector<uint32_t> clocks_;  // [thread][thread]
  std::vector<KnowledgePtr> known_;
  std::vector<KnowledgePtr> at_fence_;  // what the last fence would release
  std::vector<KnowledgePtr> seen_;      // read by relaxed atomics, known from the next fence on
  VectorClock joined_;
};

}  // namespace pagejit_emulator
