// The part of DiskCache that sets entries aside.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "cache/disk_cache.h"
#include "cache/stored_files.h"

namespace pagejit::cache {

LookupResult DiskCache::set_aside(const Location& location, const struct stat* seen,
                                  Corruption corruption, Status status) {
  const bool gone = options_.read_only || quarantine(location, seen);
  {
    const std::lock_guard lock(mutex_);
    ++stats_.corrupt[static_cast<size_t>(corruption)];
    if (!gone) ++stats_.quarantine_failures;
  }
  LookupResult result;
  result.outcome = LookupOutcome::kCorrupt;
  result.corruption = corruption;
  result.status = std::move(status);
  return result;
}

// Returns whether the name no longer leads to what was seen.
bool DiskCache::quarantine(const Location& location, const struct stat* seen) {
  FileSystem& fs = *file_system_;
  const int shard = location.shard.get();
  const char* name = location.name.c_str();
  struct stat now;
  const int stat_result = fs.stat_at(shard, name, &now);
  if (stat_result == -ENOENT) return true;
  // Somebody may have published a good entry meanwhile. What is left of this race costs one
  // compile.
  if (stat_result == 0 && seen != nullptr && !is_same_file(*seen, now)) return true;

  // The slot's name is taken from the key, so there are never more than 16, without counting and
  // whoever else is at it.
  FileDescriptor bad;
  if (directory_->open_folder(location.version, "bad", /*create=*/true, &bad).is_ok()) {
    const std::string slot = to_hex(location.source).substr(63) + ".pjk";
    const int result = fs.rename_at(shard, name, bad.get(), slot.c_str());
    if (result == 0 || result == -ENOENT) return true;
  }
  const int result = fs.unlink_at(shard, name, 0);
  if (result == 0 || result == -ENOENT) return true;
  return fs.unlink_at(shard, name, AT_REMOVEDIR) == 0;
}

void DiskCache::reject(const Entry& refused) {
  if (!directory_) return;
  try {
    const Key& key = refused.key;
    Location location{.source = key.source, .version = {}, .shard = {}, .name = key.file_name()};
    bool gone = true;
    if (!options_.read_only) {
      const IoStatus status =
          open_shard(/*create=*/false, location.source, &location.version, &location.shard);
      gone = status.is_ok() ? set_refused_aside(location, refused) : status.error() == ENOENT;
    }
    const std::lock_guard lock(mutex_);
    ++stats_.rejected;
    if (!gone) ++stats_.quarantine_failures;
  } catch (const std::exception&) {  // std::bad_alloc; the next publish replaces the entry
  }
}

// Returns whether the refused entry no longer lies there.
bool DiskCache::set_refused_aside(const Location& location, const Entry& refused) {
  FileDescriptor file;
  struct stat info;
  const int open_error = open_file(file_system_.get(), location.shard.get(), location.name,
                                   O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &file);
  if (open_error == ENOENT) return true;
  if (open_error != 0 || file_system_->stat_fd(file.get(), &info) < 0) return false;
  if (!S_ISREG(info.st_mode)) return true;  // a lookup deals with that
  std::string header;
  const int read_error =
      read_all(file_system_.get(), file.get(), kEntryHeaderBytes, kEntryHeaderBytes, &header);
  if (read_error != 0 && read_error != EFBIG) return false;  // EFBIG: there is more than a header
  // Two entries of one key may well have been compiled by two processes that did not wait for each
  // other: the same bytes then, unless the one that was refused is the damaged one.
  if (stored_checksum(header) != checksum_of(refused)) return true;
  return quarantine(location, &info);
}

}  // namespace pagejit::cache
