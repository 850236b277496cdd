#include "runtime/engine/kernel_table.h"

namespace pagejit {

KernelTable::Pointer KernelTable::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  recency_.splice(recency_.begin(), recency_, found->second);
  return found->second->second;
}

std::vector<KernelTable::Pointer> KernelTable::insert(const std::string& key, Pointer kernel) {
  std::vector<Pointer> dropped;
  std::lock_guard lock(mutex_);
  if (auto found = index_.find(key); found != index_.end()) {
    dropped.push_back(std::move(found->second->second));
    found->second->second = std::move(kernel);
    recency_.splice(recency_.begin(), recency_, found->second);
    return dropped;
  }
  recency_.emplace_front(key, std::move(kernel));
  try {
    index_.emplace(key, recency_.begin());
  } catch (...) {  // out of memory: none may be in one of them only
    recency_.pop_front();
    throw;
  }

  // New handles come only from find() under this lock, or from other handles: a count of one cannot
  // grow meanwhile.
  size_t excess = recency_.size() > capacity_ ? recency_.size() - capacity_ : 0;
  for (auto it = std::prev(recency_.end()); excess > 0 && it != recency_.begin();) {
    const auto candidate = it--;
    if (candidate->second.use_count() > 1) continue;
    dropped.push_back(std::move(candidate->second));
    index_.erase(candidate->first);
    recency_.erase(candidate);
    --excess;
  }
  return dropped;
}

size_t KernelTable::size() const {
  std::lock_guard lock(mutex_);
  return recency_.size();
}

}  // namespace pagejit
