// The garbage collection that tools do, as if two hours had passed: whatever killed processes left
// behind counts as left behind. Thread-safety: free functions.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "cache/cache_maintenance.h"

namespace pagejit::cache {

inline Result<GarbageReport> collect_garbage_of_hours_ago(const std::string& directory) {
  MaintenanceOptions options;
  options.directory = {directory, "", "test"};
  options.wall_clock = [] { return std::chrono::system_clock::now() + std::chrono::hours(2); };
  return CacheMaintenance(std::move(options)).collect_garbage(/*max_bytes=*/0);
}

}  // namespace pagejit::cache
