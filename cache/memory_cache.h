// MemoryCache: entries kept in memory up to a number of bytes, the least recently used ones dropped
// first. So that a second device, or a process whose directory cannot be used, does not compile
// again. Not a cache of loaded modules. Thread-safety: all functions may be called from several
// threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cache/entry.h"
#include "cache/fork_guard.h"
#include "cache/key.h"

namespace pagejit::cache {

struct MemoryCacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;  // entries dropped for room, and entries that alone were too large
  size_t entries = 0;
  size_t bytes = 0;  // metadata and images
};

class MemoryCache {
 public:
  // A kernel's entry has 20-80 KB, so 64 MiB hold about a thousand.
  static constexpr size_t kDefaultMaxBytes = size_t{64} << 20;

  explicit MemoryCache(size_t max_bytes = kDefaultMaxBytes) : max_bytes_(max_bytes) {}
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // Null where there is none. An entry outlives its eviction as long as somebody holds it.
  std::shared_ptr<const Entry> find(const Key& key);
  // Replaces an older entry of the same key. entry is not null.
  void put(std::shared_ptr<const Entry> entry);
  void erase(const Key& key);

  MemoryCacheStats stats() const;

 private:
  using Recency = std::list<std::shared_ptr<const Entry>>;  // most recently used first

  void erase_locked(const Key& key);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  const ForkGuard fork_guard_{mutex_};
  Recency recency_;
  std::unordered_map<Key, Recency::iterator, KeyHash> index_;
  MemoryCacheStats stats_;
};

}  // namespace pagejit::cache
