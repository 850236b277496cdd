// KernelTable: the kernels that an engine keeps loaded, by spec and device. Those that nobody holds
// a handle of are dropped when there are too many, the least recently prepared first; those with
// handles are never dropped, so the bound is soft. Thread-safety: all functions may be called from
// several threads at once.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/engine/loaded_kernel.h"

namespace pagejit {

class KernelTable {
 public:
  using Pointer = std::shared_ptr<LoadedKernel>;

  explicit KernelTable(size_t capacity) : capacity_(capacity) {}

  // Null where there is none.
  Pointer find(const std::string& key);

  // Puts a kernel in and returns those that were dropped for it: the caller destroys them with no
  // lock held, because that may synchronise a device.
  [[nodiscard]] std::vector<Pointer> insert(const std::string& key, Pointer kernel);

  size_t size() const;

 private:
  using Recency = std::list<std::pair<std::string, Pointer>>;  // most recently used first

  const size_t capacity_;
  mutable std::mutex mutex_;
  Recency recency_;
  std::unordered_map<std::string, Recency::iterator> index_;
};

}  // namespace pagejit
