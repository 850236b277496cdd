#include "cache/cache_maintenance.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace pagejit::cache {
namespace {

constexpr size_t kMaxMetadataBytes = size_t{64} << 10;  // ten times what the runtime writes

bool is_any_name(std::string_view) { return true; }

MaintenanceOptions with_defaults(MaintenanceOptions options) {
  if (!options.file_system) options.file_system = std::make_shared<PosixFileSystem>();
  if (!options.wall_clock) options.wall_clock = std::chrono::system_clock::now;
  return options;
}

void add(FileCount* count, const StoredFile& file) {
  ++count->files;
  count->bytes += file.bytes();
}

std::chrono::system_clock::time_point time_of(const struct timespec& time) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(time.tv_sec));
}

}  // namespace

CacheMaintenance::CacheMaintenance(MaintenanceOptions options)
    : options_(with_defaults(std::move(options))),
      directory_(options_.file_system.get(), options_.directory, options_.read_only) {}

Result<bool> CacheMaintenance::open_version(FileDescriptor* version) const {
  const IoStatus status = directory_.open_version(/*create=*/false, version);
  if (status.error() == ENOENT) return false;
  if (!status.is_ok()) return status.to_status();
  return true;
}

Status CacheMaintenance::visit(const FileDescriptor& parent, const std::string& name,
                               bool (*is_wanted)(std::string_view), const Visitor& visitor) const {
  Folder folder;
  const IoStatus status =
      directory_.open_folder(parent, name, /*create=*/false, &folder.descriptor);
  if (status.error() == ENOENT) return Status::ok();
  if (!status.is_ok()) return status.to_status();
  const int error =
      list_files(options_.file_system.get(), folder.descriptor.get(), is_wanted, &folder.files);
  if (error != 0) {
    return IoStatus::failure(error, "list folder \"" + name + "\" of " + path()).to_status();
  }
  std::sort(folder.files.begin(), folder.files.end(),
            [](const StoredFile& a, const StoredFile& b) { return a.name < b.name; });
  visitor(folder);
  return Status::ok();
}

Status CacheMaintenance::visit_shards(const FileDescriptor& version, const Visitor& visitor) const {
  FileDescriptor objects;
  const IoStatus status = directory_.open_folder(version, "objects", /*create=*/false, &objects);
  if (status.error() == ENOENT) return Status::ok();
  if (!status.is_ok()) return status.to_status();
  std::vector<std::string> names;
  if (const int result = options_.file_system->list_directory(objects.get(), &names); result < 0) {
    return IoStatus::failure(-result, "list folder \"objects\" of " + path()).to_status();
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!is_shard_name(name)) continue;
    if (Status visited = visit(objects, name, is_entry_name, visitor); !visited.is_ok()) {
      return visited;
    }
  }
  return Status::ok();
}

Result<CacheUsage> CacheMaintenance::usage() {
  CacheUsage usage;
  FileDescriptor version;
  const Result<bool> exists = open_version(&version);
  if (!exists.is_ok()) return exists.status();
  if (!*exists) return usage;
  Status status = visit_shards(version, [&](const Folder& folder) {
    for (const StoredFile& file : folder.files) {
      add(&usage.entries, file);
      add(&usage.by_compiler[file.name.substr(64 + 1, 8)], file);
    }
  });
  const auto count_into = [](FileCount* count) {
    return [count](const Folder& folder) {
      for (const StoredFile& file : folder.files) add(count, file);
    };
  };
  if (status.is_ok()) {
    status = visit(version, "tmp", is_temporary_name, count_into(&usage.temporaries));
  }
  if (status.is_ok()) status = visit(version, "bad", is_any_name, count_into(&usage.bad));
  if (!status.is_ok()) return status;
  return usage;
}

Result<std::vector<ListedEntry>> CacheMaintenance::list(bool with_metadata) {
  std::vector<ListedEntry> entries;
  FileDescriptor version;
  const Result<bool> exists = open_version(&version);
  if (!exists.is_ok()) return exists.status();
  if (!*exists) return entries;
  const Status status = visit_shards(version, [&](const Folder& folder) {
    for (const StoredFile& file : folder.files) {
      ListedEntry entry{.file_name = file.name,
                        .bytes = file.bytes(),
                        .used_at = time_of(file.info.st_mtim),
                        .metadata = {}};
      if (with_metadata) entry.metadata = unchecked_metadata(read_beginning(folder, file));
      entries.push_back(std::move(entry));
    }
  });
  if (!status.is_ok()) return status;
  return entries;
}

// The header and what metadata there can be; "" where the file cannot be read.
std::string CacheMaintenance::read_beginning(const Folder& folder, const StoredFile& file) const {
  static constexpr size_t kBytes = kEntryHeaderBytes + kMaxMetadataBytes;
  FileDescriptor descriptor;
  std::string bytes;
  if (open_file(options_.file_system.get(), folder.descriptor.get(), file.name,
                O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &descriptor) != 0) {
    return bytes;
  }
  const size_t size_hint = std::min<uint64_t>(file.bytes(), kBytes);
  const int error =
      read_all(options_.file_system.get(), descriptor.get(), size_hint, kBytes, &bytes);
  if (error != 0 && error != EFBIG) bytes.clear();  // EFBIG: the image follows
  return bytes;
}

std::unique_ptr<DiskCache> CacheMaintenance::open_cache(bool read_only) const {
  DiskCacheOptions options;
  options.directory = options_.directory;
  options.directory.path = path();  // absolute by now
  options.read_only = read_only;
  options.file_system = options_.file_system;
  options.wall_clock = options_.wall_clock;
  return DiskCache::open(std::move(options));
}

Status CacheMaintenance::check_may_remove(const char* what) const {
  if (!options_.read_only) return Status::ok();
  return Status(StatusCode::kInvalidArgument,
                path() + " is only read: " + what + " needs one that may be changed");
}

Result<VerifyReport> CacheMaintenance::verify(bool dry_run) {
  if (!dry_run) {
    if (Status status = check_may_remove("setting entries aside"); !status.is_ok()) return status;
  }
  const Result<std::vector<ListedEntry>> entries = list(/*with_metadata=*/false);
  if (!entries.is_ok()) return entries.status();
  VerifyReport report;
  const std::unique_ptr<DiskCache> cache = open_cache(dry_run);
  for (const ListedEntry& listed : *entries) {
    const LookupResult found = cache->lookup_file(listed.file_name);
    switch (found.outcome) {
      case LookupOutcome::kHit:
        ++report.intact;
        report.intact_bytes += found.entry->metadata.size() + found.entry->image.size();
        break;
      case LookupOutcome::kCorrupt:
        report.corrupt.push_back({listed.file_name, found.status.message()});
        break;
      case LookupOutcome::kMiss:  // ok: removed since it was listed
        if (!found.status.is_ok()) {
          report.unreadable.push_back({listed.file_name, found.status.message()});
        }
        break;
    }
  }
  return report;
}

Result<Entry> CacheMaintenance::read(const std::string& file_name) {
  const LookupResult found = open_cache(/*read_only=*/true)->lookup_file(file_name);
  if (found.outcome == LookupOutcome::kHit) return *found.entry;
  if (!found.status.is_ok()) return found.status;
  return Status(StatusCode::kNotFound, "there is no entry " + file_name + " in " + path());
}

Status CacheMaintenance::remove_all(const FileDescriptor& version, const std::string& folder,
                                    bool (*is_wanted)(std::string_view), bool only_left_behind,
                                    FileCount* removed) {
  return visit(version, folder, is_wanted, [&](const Folder& found) {
    for (const StoredFile& file : found.files) {
      if (only_left_behind && !is_left_behind(file.info, options_.wall_clock())) continue;
      if (remove_file(options_.file_system.get(), found.descriptor.get(), file)) {
        add(removed, file);
      }
    }
  });
}

Result<GarbageReport> CacheMaintenance::collect_garbage(uint64_t max_bytes) {
  if (Status status = check_may_remove("removing garbage"); !status.is_ok()) return status;
  GarbageReport report;
  FileDescriptor version;
  const Result<bool> exists = open_version(&version);
  if (!exists.is_ok()) return exists.status();
  if (!*exists) return report;
  Status status = remove_all(version, "tmp", is_temporary_name, true, &report.temporaries);
  if (status.is_ok()) status = remove_all(version, "bad", is_any_name, false, &report.bad);
  if (status.is_ok()) {
    status = visit_shards(version, [&](const Folder& folder) {
      for (const StoredFile& file : folder.files) {
        if (is_of_other_version(read_beginning(folder, file)) &&
            remove_file(options_.file_system.get(), folder.descriptor.get(), file)) {
          add(&report.other_versions, file);
        }
      }
    });
  }
  if (status.is_ok() && max_bytes > 0) status = evict(version, max_bytes, &report.evicted);
  if (!status.is_ok()) return status;
  return report;
}

Status CacheMaintenance::evict(const FileDescriptor& version, uint64_t max_bytes,
                               FileCount* removed) {
  // Those that evict after publishing stop meanwhile. It is held for milliseconds at a time
  // elsewhere, and two at once would only remove too much.
  ProcessLock lock;
  if (lock.open(options_.file_system.get(), version.get()).is_ok()) lock.try_take_for_removal();
  std::vector<StoredFile> files;
  uint64_t bytes = 0;
  Status status = visit_shards(version, [&](const Folder& folder) {
    for (const StoredFile& file : folder.files) {
      bytes += file.bytes();
      files.push_back(file);
    }
  });
  if (!status.is_ok()) return status;
  std::sort(files.begin(), files.end(), is_older);
  FileDescriptor objects;
  if (!directory_.open_folder(version, "objects", /*create=*/false, &objects).is_ok()) {
    return Status::ok();  // removed meanwhile
  }
  for (const StoredFile& file : files) {
    if (bytes <= max_bytes) break;
    FileDescriptor shard;
    if (directory_.open_folder(objects, file.name.substr(0, 2), /*create=*/false, &shard).is_ok() &&
        remove_file(options_.file_system.get(), shard.get(), file)) {
      bytes -= file.bytes();
      add(removed, file);
    }
  }
  return Status::ok();
}

Result<FileCount> CacheMaintenance::clear() {
  if (Status status = check_may_remove("clearing"); !status.is_ok()) return status;
  FileCount removed;
  FileDescriptor version;
  const Result<bool> exists = open_version(&version);
  if (!exists.is_ok()) return exists.status();
  if (!*exists) return removed;
  Status status = visit_shards(version, [&](const Folder& folder) {
    for (const StoredFile& file : folder.files) {
      if (remove_file(options_.file_system.get(), folder.descriptor.get(), file)) {
        add(&removed, file);
      }
    }
  });
  if (status.is_ok()) status = remove_all(version, "bad", is_any_name, false, &removed);
  if (status.is_ok()) status = remove_all(version, "tmp", is_temporary_name, true, &removed);
  if (!status.is_ok()) return status;
  return removed;
}

}  // namespace pagejit::cache
