// Listing the entries of a DiskCache.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/stored_files.h"

namespace pagejit::cache {

Result<DiskCacheListing> DiskCache::for_each_entry(
    const std::function<Status(const Entry& entry)>& visit) {
  if (!directory_) return memory_only_reason_;
  try {
    DiskCacheListing listing;
    FileDescriptor version;
    FileDescriptor shard;
    FileDescriptor objects;
    IoStatus status = directory_->open_version(/*create=*/false, &version);
    if (status.is_ok()) {
      status = directory_->open_folder(version, "objects", /*create=*/false, &objects);
    }
    if (status.error() == ENOENT) return listing;
    if (!status.is_ok()) return status.to_status();
    std::vector<std::string> shards;
    if (const int result = file_system_->list_directory(objects.get(), &shards); result < 0) {
      return IoStatus::failure(-result, "list " + path() + "/v1/objects").to_status();
    }
    std::sort(shards.begin(), shards.end());
    for (const std::string& name : shards) {
      if (!is_shard_name(name)) continue;
      status = directory_->open_folder(objects, name, /*create=*/false, &shard);
      if (status.error() == ENOENT) continue;  // removed meanwhile
      if (!status.is_ok()) return status.to_status();
      if (Status visited = visit_shard(shard, visit, &listing); !visited) return visited;
    }
    return listing;
  } catch (const std::exception& e) {  // std::bad_alloc
    return IoStatus::failure(ENOMEM, e.what()).to_status();
  }
}

Status DiskCache::visit_shard(const FileDescriptor& shard,
                              const std::function<Status(const Entry& entry)>& visit,
                              DiskCacheListing* listing) {
  std::vector<StoredFile> files;
  if (const int error = list_files(file_system_.get(), shard.get(), is_entry_name, &files);
      error != 0) {
    return IoStatus::failure(error, "list a folder of " + path() + "/v1/objects").to_status();
  }
  std::sort(files.begin(), files.end(),
            [](const StoredFile& a, const StoredFile& b) { return a.name < b.name; });
  for (const StoredFile& file : files) {
    const LookupResult found = lookup_file(file.name);
    if (found.outcome == LookupOutcome::kCorrupt) {
      ++listing->corrupt;
    } else if (found.outcome == LookupOutcome::kHit) {
      ++listing->entries;
      if (Status status = visit(*found.entry); !status) return status;
    } else if (!found.status) {
      return found.status;
    }
  }
  return Status::ok();
}

}  // namespace pagejit::cache
