// Listing the entries of a DiskCache.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/disk_cache.h"

namespace pagejit::cache {
namespace {

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<DiskCacheListing> DiskCache::for_each_entry(
    const std::function<Status(const Entry& entry)>& visit) {
  if (!directory_) return memory_only_reason_;
  try {
    DiskCacheListing listing;
    Location location;
    FileDescriptor objects;
    IoStatus status = directory_->open_version(/*create=*/false, &location.version);
    if (status.is_ok()) {
      status = directory_->open_folder(location.version, "objects", /*create=*/false, &objects);
    }
    if (status.error() == ENOENT) return listing;
    if (!status.is_ok()) return status.to_status();
    std::vector<std::string> shards;
    if (const int result = file_system_->list_directory(objects.get(), &shards); result < 0) {
      return IoStatus::failure(-result, "list " + path() + "/v1/objects").to_status();
    }
    std::sort(shards.begin(), shards.end());
    for (const std::string& shard : shards) {
      if (shard.size() != 2 || !is_hex(shard)) continue;
      status = directory_->open_folder(objects, shard, /*create=*/false, &location.shard);
      if (status.error() == ENOENT) continue;  // removed meanwhile
      if (!status.is_ok()) return status.to_status();
      if (Status visited = visit_shard(&location, visit, &listing); !visited) return visited;
    }
    return listing;
  } catch (const std::exception& e) {  // std::bad_alloc
    return IoStatus::failure(ENOMEM, e.what()).to_status();
  }
}

Status DiskCache::visit_shard(Location* location,
                              const std::function<Status(const Entry& entry)>& visit,
                              DiskCacheListing* listing) {
  std::vector<std::string> names;
  if (const int result = file_system_->list_directory(location->shard.get(), &names); result < 0) {
    return IoStatus::failure(-result, "list a folder of " + path() + "/v1/objects").to_status();
  }
  std::sort(names.begin(), names.end());
  const size_t name_size = Key().file_name().size();
  for (std::string& name : names) {
    if (name.size() != name_size || !name.ends_with(".pjk")) continue;
    const std::optional<Digest> source = digest_from_hex(name.substr(0, 2 * sizeof(Digest)));
    if (!source) continue;
    location->source = *source;
    location->name = std::move(name);
    const LookupResult found = read_entry(*location, nullptr);
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
