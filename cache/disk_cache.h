// DiskCache: entries in one directory of the user's, shared by any number of processes. It is a
// hint: whatever goes wrong is a miss or a dropped entry with a reason, never an exception, an
// abort or a print. It keeps nothing in memory (see memory_cache.h). Only lock() waits, for a
// bounded time. Thread-safety: all functions may be called from several threads and processes at
// once.
//
//   v1/objects/<first 2 hex of S>/<S>.<C8>.pjk   entries, each published by one rename
//   v1/tmp/                                      temporaries of publishers; left behind only by a
//                                                killed one
//   v1/bad/<0-f>.pjk                             corrupt entries set aside, at most 16: the slot is
//                                                the last hex digit of S
//   v1/CACHEDIR.TAG                              tells backup programs to skip v1
//   v1/lock                                      empty; its bytes are locked (process_lock.h)
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "cache/cache_directory.h"
#include "cache/disk_cache_evict.h"
#include "cache/entry.h"
#include "cache/file_system.h"
#include "cache/fork_guard.h"
#include "cache/key.h"
#include "cache/layer.h"
#include "cache/process_lock.h"
#include "pagejit/status.h"

namespace pagejit::cache {

struct DiskCacheOptions {
  DirectoryChoice directory;  // of resolve_cache_directory(); an empty path means memory only
  // Called at most once in the life of the cache, when the directory turns out to be of no use:
  // nothing is stored then. The status is the bare reason. From any thread; must not call back into
  // the cache.
  std::function<void(const Status&)> on_warning;
  // Called at most once in the life of the cache, when lock() yields kUnavailable though there is a
  // directory. As on_warning otherwise, and less grave: keys may be computed more than once.
  std::function<void(const Status&)> on_lock_failure;
  // Only reads: makes, moves, touches, locks and deletes nothing, whatever it meets. Its folders
  // and files may belong to root as well as to the effective user, and nobody else may be able to
  // write them.
  bool read_only = false;
  // The entries are kept below this size, the least recently used going first: approximately, and
  // after publishing only (README.md, "Eviction"). 0 = no limit.
  uint64_t max_bytes = uint64_t{512} << 20;
  // For how long one publish() evicts at most. Well below 5 ms, of which a part goes by between two
  // looks at the clock.
  std::chrono::microseconds eviction_budget{2'500};
  // For how long lock() waits: longer than any one compile that was seen takes.
  std::chrono::milliseconds lock_timeout{60'000};
  std::shared_ptr<FileSystem> file_system;                       // null = the real one
  std::function<std::chrono::steady_clock::time_point()> clock;  // null = the real one
  // For the age of files. null = the real one.
  std::function<std::chrono::system_clock::time_point()> wall_clock;
};

enum class LockOutcome : uint8_t {
  kTaken = 0,        // computes, publishes and releases the lock
  kPublished = 1,    // need not compute: another process has published
  kTimedOut = 2,     // goes on without the lock, which another process has held all the time
  kUnavailable = 3,  // goes on without: memory only, read-only, locks not supported, ...
  kStopped = 4,      // was asked to stop, and has neither lock nor entry
};

// Counts since open(). Keys of the maps are errno values.
struct DiskCacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;  // all lookups that are no hit and not corrupt, also those of a waiter
  std::array<uint64_t, kNumCorruptions> corrupt{};  // by Corruption
  uint64_t rejected = 0;                            // calls of reject()
  uint64_t quarantine_failures =
      0;  // corrupt entries that could not be moved away; the next publish replaces them
  uint64_t published = 0;
  uint64_t publish_skips = 0;  // not tried because of an earlier failure (backoff), or memory only
  std::map<int, uint64_t> publish_failures;
  std::map<int, uint64_t> lookup_failures;  // misses for another reason than that there is no entry
  uint64_t lock_waits = 0;                  // calls of lock() that found the lock held
  uint64_t lock_wait_hits = 0;              // of these, kPublished
  uint64_t lock_timeouts = 0;  // of these, kTimedOut; the others took the lock, or could not
  std::map<int, uint64_t> lock_failures;  // kUnavailable, memory only and read-only left out
  uint64_t evictions = 0;                 // entries that went for room
  uint64_t evicted_bytes = 0;
  uint64_t temporaries_removed = 0;               // of publishers that were killed
  std::chrono::microseconds longest_eviction{0};  // that one publish spent on the three above

  uint64_t corrupt_total() const;
  uint64_t publish_failures_total() const;
};

// What for_each_entry() met.
struct DiskCacheListing {
  uint64_t entries = 0;  // valid, and visited
  uint64_t corrupt = 0;  // set aside, as by lookup()
};

class DiskCache final : public Layer {
 public:
  // Never fails: a directory that cannot be used makes a cache that is memory only, with one
  // warning. A directory that does not exist is made by the first lock() or publish().
  static std::unique_ptr<DiskCache> open(DiskCacheOptions options);
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // True: every lookup is a miss and every publish is refused, for the reason in
  // memory_only_reason().
  bool is_memory_only() const { return !directory_; }
  const Status& memory_only_reason() const { return memory_only_reason_; }
  bool is_read_only() const { return options_.read_only; }
  const std::string& path() const;           // absolute; "" where memory only
  std::string description() const override;  // "directory /usr/share/pagejit"

  // Reads the entry whole and checks all of it. A corrupt one is moved to v1/bad, so that it is met
  // once. A hit keeps the entry from eviction: its file is touched where that was not done for an
  // hour.
  LookupResult lookup(const Key& key) override;
  // Reads all entries for S. The best of those that are valid; of equally good ones that of the
  // smaller file name, so that the answer depends on no clock.
  LookupResult lookup_any_compiler(const Digest& source, const IsBetter& is_better) override;
  // The entry in the file of that name (Key::file_name()), for tools: as lookup(), but it is not
  // touched. A miss too where `file_name` is no such name.
  LookupResult lookup_file(const std::string& file_name);

  // Makes the entry visible to all processes, replacing an older one. On failure nothing is left
  // behind, and the caller goes on with the bytes that it has: kCacheError (also during backoff),
  // kInvalidArgument for an oversized entry. After a failure that is likely to last (disk full,
  // quota, read-only, permissions, I/O) publishing pauses: 1 s, and twice as long each time up to
  // 64 s. A read-only cache refuses it (kCacheError, counted as a skip).
  Status publish(const Entry& entry);

  // The calling process's turn to compute `key` (for what the caller does then see LockOutcome): of
  // the processes that call this at one time one at a time gets the lock, and those who wait for it
  // look whether they still need it. `is_published` looks the key up; it is called once after the
  // lock was taken, and now and then during the wait. The lock is taken exactly on kTaken; it must
  // not outlive this cache, nor be held while anything waits for a person. Waits for at most
  // lock_timeout. An exception out of `is_published` is passed on. *has_waited, if not null:
  // whether the lock was found held.
  // stop: ends the wait, within 50 ms.
  LockOutcome lock(const Key& key, const std::function<bool()>& is_published, ProcessLock* lock,
                   const std::stop_token& stop = {}, bool* has_waited = nullptr);

  // Sets the entry aside as if it were corrupt: it is intact, but its image was refused by the
  // driver. Only this very entry: another one that has its name by now stays.
  void reject(const Entry& refused);

  // Visits each valid entry, in the order of the files' names; other processes may publish and
  // remove meanwhile. Ends at the first status of `visit` that is not ok and returns it.
  // kCacheError where there is no directory or a part of it cannot be read; a directory that was
  // never made has no entries.
  Result<DiskCacheListing> for_each_entry(const std::function<Status(const Entry& entry)>& visit);

  DiskCacheStats stats() const;

 private:
  // Of an entry that is looked up; filled from the top.
  struct Location {
    Digest source{};
    FileDescriptor version;  // v1
    FileDescriptor shard;    // v1/objects/<2 hex>
    std::string name;        // the file's
  };
  // A file that holds a valid entry.
  struct ValidFile {
    FileDescriptor file;
    struct stat info {};
  };

  explicit DiskCache(DiskCacheOptions options);

  void become_memory_only(Status reason);
  void warn(const Status& status);
  IoStatus open_shard(bool create, const Digest& source, FileDescriptor* version,
                      FileDescriptor* shard) const;
  Status visit_shard(const FileDescriptor& shard,
                     const std::function<Status(const Entry& entry)>& visit,
                     DiskCacheListing* listing);
  LookupResult lookup_best(const Digest& source, const IsBetter& is_better);
  // valid: set on a hit.
  LookupResult read_entry(const Location& location, const Key* key, ValidFile* valid);
  bool is_trusted(const struct stat& file) const;
  void touch(const ValidFile& used);
  LookupResult set_aside(const Location& location, const struct stat* seen, Corruption corruption,
                         Status status);
  bool quarantine(const Location& location, const struct stat* seen);
  bool set_refused_aside(const Location& location, const Entry& refused);
  LookupResult miss(const IoStatus& status);
  LookupResult count(LookupResult result);
  IoStatus write_entry(const Key& key, const std::string& bytes);
  void evict(const FileDescriptor& version, const Key& key, uint64_t bytes);
  Status finish_publish(const IoStatus& status);
  void write_tag(const FileDescriptor& version, const FileDescriptor& tmp);
  IoStatus open_lock(ProcessLock* lock) const;
  LockOutcome lock_failed(const IoStatus& status);

  const DiskCacheOptions options_;
  const std::shared_ptr<FileSystem> file_system_;
  std::unique_ptr<const CacheDirectory> directory_;  // null: memory only
  std::unique_ptr<Eviction> eviction_;               // null: memory only or read-only
  Status memory_only_reason_;
  std::atomic_flag warned_;
  std::atomic_flag lock_failure_told_;

  mutable std::mutex mutex_;  // guards what follows
  const ForkGuard fork_guard_{mutex_};
  DiskCacheStats stats_;
  std::chrono::steady_clock::time_point publish_again_at_{};
  std::chrono::seconds backoff_{0};
  std::string backoff_reason_;
};

}  // namespace pagejit::cache
