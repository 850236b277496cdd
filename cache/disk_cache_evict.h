// Eviction: keeps the entries of one directory below a number of bytes, and removes temporaries of
// killed publishers; a little after each publish and never for long. What it knows of the directory
// it learns by looking at some folders each time, so the limit is met in the end, not at each
// moment; cache_maintenance.h does it exactly. Thread-safety: all functions may be called from
// several threads at once; one of them works and the others return at once.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "cache/cache_directory.h"
#include "cache/file_io.h"
#include "cache/stored_files.h"

namespace pagejit::cache {

struct EvictionOptions {
  uint64_t max_bytes = 0;              // of all entries; 0 = no limit
  std::chrono::microseconds budget{};  // of one call
  std::function<std::chrono::steady_clock::time_point()> clock;
  std::function<std::chrono::system_clock::time_point()> wall_clock;
};

struct EvictionCounts {
  uint64_t evictions = 0;
  uint64_t evicted_bytes = 0;
  uint64_t temporaries_removed = 0;
  std::chrono::microseconds duration{0};
};

class Eviction {
 public:
  // The pointers must outlive this object.
  Eviction(FileSystem* file_system, const CacheDirectory* directory, EvictionOptions options);
  Eviction(const Eviction&) = delete;
  Eviction& operator=(const Eviction&) = delete;

  // To be called after an entry of so many bytes was published under `name`, which is never evicted
  // by this call. version: the open v1. Whatever fails is left for the next call.
  EvictionCounts after_publish(const FileDescriptor& version, const std::string& name,
                               uint64_t bytes);

 private:
  // What the last look at a folder of entries has found.
  struct Shard {
    bool is_known = false;
    bool is_fresh = false;      // looked at while evicting in this call
    bool is_exhausted = false;  // nothing more to evict there in this call
    uint64_t bytes = 0;
    uint64_t entries = 0;
    uint64_t seen = 0;          // of them those whose size and time were read
    struct timespec oldest {};  // meaningful where entries > 0
  };
  static constexpr size_t kNumShards = 256;

  bool is_over(std::chrono::steady_clock::time_point deadline) const;
  void remove_temporaries(const FileDescriptor& version, EvictionCounts* counts);
  void survey(const FileDescriptor& objects, std::chrono::steady_clock::time_point deadline);
  bool look_at(const FileDescriptor& objects, size_t index,
               std::chrono::steady_clock::time_point deadline, FileDescriptor* folder,
               std::vector<StoredFile>* files);
  void evict(const FileDescriptor& version, const FileDescriptor& objects, const std::string& keep,
             std::chrono::steady_clock::time_point deadline, EvictionCounts* counts);
  void evict_from(const FileDescriptor& objects, size_t index, const std::string& keep,
                  std::chrono::steady_clock::time_point deadline, EvictionCounts* counts);
  size_t oldest_shard() const;
  uint64_t estimated_bytes() const;
  uint64_t target_bytes() const { return options_.max_bytes - options_.max_bytes / 10; }

  FileSystem* const file_system_;
  const CacheDirectory* const directory_;
  const EvictionOptions options_;

  std::mutex mutex_;  // guards what follows; only ever tried
  std::array<Shard, kNumShards> shards_;
  size_t next_shard_ = 0;  // of the round through all of them
  bool has_begun_ = false;
  bool is_evicting_ = false;  // has been over the limit, and not below the target since
  std::chrono::steady_clock::time_point temporaries_at_{};  // when to look at them again
};

}  // namespace pagejit::cache
