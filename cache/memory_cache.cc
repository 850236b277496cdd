#include "cache/memory_cache.h"

#include <utility>

namespace pagejit::cache {
namespace {

size_t entry_bytes(const Entry& entry) { return entry.metadata.size() + entry.image.size(); }

}  // namespace

std::shared_ptr<const Entry> MemoryCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) {
    ++stats_.misses;
    return nullptr;
  }
  ++stats_.hits;
  recency_.splice(recency_.begin(), recency_, found->second);
  return *found->second;
}

void MemoryCache::put(std::shared_ptr<const Entry> entry) {
  const std::lock_guard lock(mutex_);
  erase_locked(entry->key);
  const size_t bytes = entry_bytes(*entry);
  if (bytes > max_bytes_) {  // would push everything else out and still not fit
    ++stats_.evictions;
    return;
  }
  while (stats_.bytes + bytes > max_bytes_) {
    const Key oldest = recency_.back()->key;
    erase_locked(oldest);
    ++stats_.evictions;
  }
  recency_.push_front(std::move(entry));
  try {
    index_.emplace(recency_.front()->key, recency_.begin());
  } catch (...) {  // out of memory: none may be in one of them only
    recency_.pop_front();
    throw;
  }
  stats_.bytes += bytes;
}

void MemoryCache::erase(const Key& key) {
  const std::lock_guard lock(mutex_);
  erase_locked(key);
}

void MemoryCache::erase_locked(const Key& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return;
  stats_.bytes -= entry_bytes(**found->second);
  recency_.erase(found->second);
  index_.erase(found);
}

MemoryCacheStats MemoryCache::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryCacheStats stats = stats_;
  stats.entries = index_.size();
  return stats;
}

}  // namespace pagejit::cache
