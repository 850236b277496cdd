#include "cache/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace pagejit::cache {

namespace {

// Whether two looks at a name saw one file. Inode numbers are reused at once by some file systems,
// so times count too.
bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

uint64_t DiskCacheStats::corrupt_total() const {
  uint64_t total = 0;
  for (uint64_t num : corrupt) total += num;
  return total;
}

uint64_t DiskCacheStats::publish_failures_total() const {
  uint64_t total = 0;
  for (const auto& [error, num] : publish_failures) total += num;
  return total;
}

std::unique_ptr<DiskCache> DiskCache::open(DiskCacheOptions options) {
  if (!options.file_system) options.file_system = std::make_shared<PosixFileSystem>();
  if (!options.clock) options.clock = std::chrono::steady_clock::now;
  std::unique_ptr<DiskCache> cache(new DiskCache(std::move(options)));
  const DirectoryChoice& choice = cache->options_.directory;
  if (choice.path.empty()) {
    cache->become_memory_only(Status(StatusCode::kCacheError, choice.reason));
    return cache;
  }
  cache->directory_ = std::make_unique<CacheDirectory>(cache->file_system_.get(), choice);
  FileDescriptor root;
  IoStatus status = cache->directory_->open_root(/*create=*/false, &root);
  if (status.error() == ENOENT) status = cache->directory_->check_required_parent();
  // Anything else (EMFILE, EIO, ESTALE) may pass and is met again where it matters.
  if (is_unusable_directory(status.error())) cache->become_memory_only(status.to_status());
  return cache;
}

DiskCache::DiskCache(DiskCacheOptions options)
    : options_(std::move(options)), file_system_(options_.file_system) {}

const std::string& DiskCache::path() const {
  return directory_ ? directory_->path() : options_.directory.path;
}

void DiskCache::become_memory_only(Status reason) {
  directory_.reset();
  memory_only_reason_ = std::move(reason);
  warn(memory_only_reason_);
}

void DiskCache::warn(const Status& status) {
  if (warned_.test_and_set() || !options_.on_warning) return;
  try {
    options_.on_warning(status);
  } catch (...) {  // a caller's defect must not turn a full disk into a failed request
  }
}

IoStatus DiskCache::open_shard(bool create, const Digest& source, FileDescriptor* version,
                               FileDescriptor* shard) const {
  if (IoStatus status = directory_->open_version(create, version); !status.is_ok()) return status;
  FileDescriptor objects;
  if (IoStatus status = directory_->open_folder(*version, "objects", create, &objects);
      !status.is_ok()) {
    return status;
  }
  const std::string shard_name = to_hex(as_bytes(source).substr(0, 1));
  return directory_->open_folder(objects, shard_name, create, shard);
}

LookupResult DiskCache::miss(const IoStatus& status) {
  LookupResult result;
  if (status.is_ok() || status.error() == ENOENT) return result;
  result.status = status.to_status();
  if (status.error() == EPERM || status.error() == EACCES) warn(result.status);
  const std::lock_guard lock(mutex_);
  ++stats_.lookup_failures[status.error()];
  return result;
}

LookupResult DiskCache::count(LookupResult result) {
  const std::lock_guard lock(mutex_);
  if (result.outcome == LookupOutcome::kHit) ++stats_.hits;
  if (result.outcome == LookupOutcome::kMiss) ++stats_.misses;
  return result;
}

LookupResult DiskCache::lookup(const Key& key) {
  if (!directory_) return count(LookupResult());
  try {
    Location location{.source = key.source, .version = {}, .shard = {}, .name = key.file_name()};
    const IoStatus status =
        open_shard(/*create=*/false, location.source, &location.version, &location.shard);
    return count(status.is_ok() ? read_entry(location, &key) : miss(status));
  } catch (const std::exception& e) {  // std::bad_alloc
    return count(miss(IoStatus::failure(ENOMEM, e.what())));
  }
}

LookupResult DiskCache::lookup_any_compiler(const Digest& source) {
  if (!directory_) return count(LookupResult());
  try {
    return count(lookup_newest(source));
  } catch (const std::exception& e) {  // std::bad_alloc
    return count(miss(IoStatus::failure(ENOMEM, e.what())));
  }
}

LookupResult DiskCache::lookup_newest(const Digest& source) {
  Location location{.source = source, .version = {}, .shard = {}, .name = {}};
  if (const IoStatus status =
          open_shard(/*create=*/false, location.source, &location.version, &location.shard);
      !status.is_ok()) {
    return miss(status);
  }
  std::vector<std::string> names;
  if (const int result = file_system_->list_directory(location.shard.get(), &names); result < 0) {
    return miss(IoStatus::failure(-result, "list " + directory_->path()));
  }
  const std::string prefix = to_hex(source) + ".";
  const size_t name_size = Key{.source = source}.file_name().size();
  std::vector<std::pair<struct timespec, std::string>> candidates;
  for (std::string& name : names) {
    struct stat info;
    if (name.size() == name_size && name.starts_with(prefix) && name.ends_with(".pjk") &&
        file_system_->stat_at(location.shard.get(), name.c_str(), &info) == 0) {
      candidates.emplace_back(info.st_mtim, std::move(name));
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    if (a.first.tv_sec != b.first.tv_sec) return a.first.tv_sec > b.first.tv_sec;
    if (a.first.tv_nsec != b.first.tv_nsec) return a.first.tv_nsec > b.first.tv_nsec;
    return a.second < b.second;
  });
  LookupResult result;
  for (auto& [time, name] : candidates) {
    location.name = std::move(name);
    result = read_entry(location, nullptr);
    if (result.outcome == LookupOutcome::kHit) break;
  }
  return result;
}

LookupResult DiskCache::read_entry(const Location& location, const Key* key) {
  const auto corrupt = [&](const struct stat* seen, Corruption kind, const std::string& what) {
    return set_aside(location, seen, kind,
                     Status(StatusCode::kDataCorrupt, location.name + ": " + what));
  };
  // O_NONBLOCK: the name might be a FIFO, which would block the open for ever.
  FileDescriptor file;
  const int open_error = open_file(file_system_.get(), location.shard.get(), location.name,
                                   O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &file);
  if (open_error == ELOOP || open_error == ENXIO) {
    return corrupt(nullptr, Corruption::kNotPrivateFile, "is a symbolic link or a socket");
  }
  if (open_error != 0) return miss(IoStatus::failure(open_error, "open " + location.name));

  struct stat info;
  if (const int result = file_system_->stat_fd(file.get(), &info); result < 0) {
    return miss(IoStatus::failure(-result, "stat " + location.name));
  }
  const uid_t user = file_system_->effective_user();
  if (!S_ISREG(info.st_mode) || info.st_uid != user || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return corrupt(
        &info, Corruption::kNotPrivateFile,
        "is not a regular file that only user " + std::to_string(user) + " owns and can write");
  }

  static constexpr const char* kTooLarge = "is larger than any entry";
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > kMaxEntryBytes) return corrupt(&info, Corruption::kLength, kTooLarge);
  std::string bytes;
  const int read_error = read_all(file_system_.get(), file.get(), size, kMaxEntryBytes, &bytes);
  if (read_error == EFBIG) return corrupt(&info, Corruption::kLength, kTooLarge);  // it has grown
  if (read_error != 0) return miss(IoStatus::failure(read_error, "read " + location.name));

  Corruption kind{};
  Result<Entry> entry =
      key != nullptr ? decode_entry(bytes, *key, &kind) : decode_entry(bytes, &kind);
  if (!entry.is_ok()) return corrupt(&info, kind, entry.status().message());
  if (entry->key.file_name() != location.name) {
    return corrupt(&info, Corruption::kWrongKey, "holds the entry " + entry->key.file_name());
  }
  LookupResult result;
  result.outcome = LookupOutcome::kHit;
  result.entry = std::make_shared<const Entry>(std::move(entry).value());
  return result;
}

LookupResult DiskCache::set_aside(const Location& location, const struct stat* seen,
                                  Corruption corruption, Status status) {
  const bool gone = quarantine(location, seen);
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

void DiskCache::reject(const Key& key) {
  if (!directory_) return;
  try {
    Location location{.source = key.source, .version = {}, .shard = {}, .name = key.file_name()};
    const bool gone =
        open_shard(/*create=*/false, location.source, &location.version, &location.shard).is_ok() &&
        quarantine(location, nullptr);
    const std::lock_guard lock(mutex_);
    ++stats_.rejected;
    if (!gone) ++stats_.quarantine_failures;
  } catch (const std::exception&) {  // std::bad_alloc; the next publish replaces the entry
  }
}

bool DiskCache::is_private() {
  if (!directory_) return false;
  try {
    FileDescriptor version;
    FileDescriptor objects;
    return directory_->open_version(/*create=*/false, &version).is_ok() &&
           directory_->open_folder(version, "objects", /*create=*/false, &objects).is_ok();
  } catch (const std::exception&) {  // std::bad_alloc: not known to be private
    return false;
  }
}

DiskCacheStats DiskCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace pagejit::cache
