// CacheMaintenance: what tools do with a cache directory as a whole: count, list, verify, remove.
// Not for the way to a kernel: it looks at every file. Whatever it does is safe beside processes
// that use the directory: entries appear and vanish whole, and at worst one is compiled again.
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache_directory.h"
#include "cache/disk_cache.h"
#include "cache/entry.h"
#include "cache/stored_files.h"
#include "pagejit/status.h"

namespace pagejit::cache {

struct MaintenanceOptions {
  DirectoryChoice directory;  // of resolve_cache_directory(); the path must not be empty
  // Only reads, and takes a directory of root's too. What removes is then kInvalidArgument.
  bool read_only = false;
  std::shared_ptr<FileSystem> file_system;                            // null = the real one
  std::function<std::chrono::system_clock::time_point()> wall_clock;  // null = the real one
};

struct FileCount {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

struct CacheUsage {
  FileCount entries;
  std::map<std::string, FileCount> by_compiler;  // by the first 8 hexadecimal digits of C
  FileCount temporaries;                         // being written, or left behind
  FileCount bad;                                 // set aside
};

struct ListedEntry {
  std::string file_name;
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point used_at;  // when published or last found, to the hour
  // As it stands in the file, whose checksum was not looked at; "" where the file does not begin
  // like an entry, or has none.
  std::string metadata;
};

struct VerifyReport {
  struct Problem {
    std::string file_name;
    std::string reason;  // a sentence
  };
  uint64_t intact = 0;
  uint64_t intact_bytes = 0;        // metadata and images
  std::vector<Problem> corrupt;     // set aside, unless it was a dry run
  std::vector<Problem> unreadable;  // not to be judged: no permission, I/O errors
};

struct GarbageReport {
  FileCount temporaries;     // left behind
  FileCount bad;             // set aside before
  FileCount other_versions;  // entries of another format version, which nothing here can read
  FileCount evicted;         // the least recently used of what was over the limit
};

// All functions yield kCacheError, with the reason, where the directory cannot be used or listed. A
// directory that does not exist is an empty one. A file that cannot be looked at or removed is left
// out.
class CacheMaintenance {
 public:
  explicit CacheMaintenance(MaintenanceOptions options);

  const std::string& path() const { return directory_.path(); }

  Result<CacheUsage> usage();
  // By name. with_metadata: reads the beginning of each file.
  Result<std::vector<ListedEntry>> list(bool with_metadata);
  // Reads every entry and checks all of it. dry_run: sets nothing aside.
  Result<VerifyReport> verify(bool dry_run);
  // Temporaries of killed publishers, entries that were set aside, entries of other format versions
  // and, where max_bytes is not 0, what is over it.
  Result<GarbageReport> collect_garbage(uint64_t max_bytes);
  // All entries, also those set aside, and temporaries that were left behind; not what is being
  // written at this moment.
  Result<FileCount> clear();
  // The entry of that name, verified. kNotFound, or kDataCorrupt with the reason.
  Result<Entry> read(const std::string& file_name);

 private:
  // A folder below v1 with its regular files.
  struct Folder {
    FileDescriptor descriptor;
    std::vector<StoredFile> files;
  };
  using Visitor = std::function<void(const Folder& folder)>;

  // Opens v1; false where there is none.
  Result<bool> open_version(FileDescriptor* version) const;
  Status visit(const FileDescriptor& parent, const std::string& name,
               bool (*is_wanted)(std::string_view), const Visitor& visitor) const;
  Status visit_shards(const FileDescriptor& version, const Visitor& visitor) const;
  Status remove_all(const FileDescriptor& version, const std::string& folder,
                    bool (*is_wanted)(std::string_view), bool only_left_behind, FileCount* removed);
  Status evict(const FileDescriptor& version, uint64_t max_bytes, FileCount* removed);
  std::string read_beginning(const Folder& folder, const StoredFile& file) const;
  std::unique_ptr<DiskCache> open_cache(bool read_only) const;
  Status check_may_remove(const char* what) const;

  MaintenanceOptions options_;
  CacheDirectory directory_;
};

}  // namespace pagejit::cache
