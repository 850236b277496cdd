#include "runtime/emulator/clocks.h"

#include <algorithm>

namespace pagejit_emulator {

KnowledgePtr unite(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  auto united = std::make_shared<Knowledge>(*a);
  for (const auto& [cta, clock] : *b) {
    auto& mine = (*united)[cta];
    if (mine == nullptr) {
      mine = clock;
    } else if (mine != clock) {
      auto later = std::make_shared<VectorClock>(*mine);
      for (size_t i = 0; i < later->size(); ++i) {
        (*later)[i] = std::max((*later)[i], (*clock)[i]);
      }
      mine = std::move(later);
    }
  }
  return united;
}

void Clocks::reset(uint64_t cta, int num_threads) {
  cta_ = cta;
  num_threads_ = static_cast<unsigned>(num_threads);
  clocks_.assign(size_t{num_threads_} * num_threads_, 0);
  for (int i = 0; i < num_threads; ++i) row(i)[i] = 1;
  known_.assign(num_threads_, nullptr);
  at_fence_.assign(num_threads_, nullptr);
  seen_.assign(num_threads_, nullptr);
  joined_.resize(num_threads_);
}

bool Clocks::knows(int thread, uint64_t cta, Epoch epoch) const {
  if (cta == cta_) return knows(thread, epoch);
  const KnowledgePtr& known = known_[thread];
  if (known == nullptr) return false;
  const auto it = known->find(cta);
  return it != known->end() && (*it->second)[epoch.thread()] >= epoch.clock();
}

void Clocks::join(const std::vector<int>& threads) {
  std::fill(joined_.begin(), joined_.end(), 0);
  KnowledgePtr known;
  for (int thread : threads) {
    const uint32_t* clock = row(thread);
    for (unsigned i = 0; i < num_threads_; ++i) joined_[i] = std::max(joined_[i], clock[i]);
    known = unite(known, known_[thread]);
  }
  for (int thread : threads) {
    std::copy(joined_.begin(), joined_.end(), row(thread));
    ++row(thread)[thread];
    known_[thread] = known;
  }
}

void Clocks::acquire(int thread, const KnowledgePtr& location) {
  known_[thread] = unite(known_[thread], location);
}

KnowledgePtr Clocks::release(int thread) {
  auto own = std::make_shared<Knowledge>();
  (*own)[cta_] = std::make_shared<VectorClock>(row(thread), row(thread) + num_threads_);
  ++row(thread)[thread];
  return unite(known_[thread], own);
}

void Clocks::fence(int thread) {
  acquire(thread, seen_[thread]);
  at_fence_[thread] = release(thread);
}

void Clocks::relaxed_read(int thread, const KnowledgePtr& location) {
  seen_[thread] = unite(seen_[thread], location);
}

}  // namespace pagejit_emulator
