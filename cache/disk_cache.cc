#include "cache/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "cache/stored_files.h"

namespace pagejit::cache {

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
  if (!options.wall_clock) options.wall_clock = std::chrono::system_clock::now;
  std::unique_ptr<DiskCache> cache(new DiskCache(std::move(options)));
  const DirectoryChoice& choice = cache->options_.directory;
  if (choice.path.empty()) {
    cache->become_memory_only(Status(StatusCode::kCacheError, choice.reason));
    return cache;
  }
  const bool read_only = cache->is_read_only();
  cache->directory_ =
      std::make_unique<CacheDirectory>(cache->file_system_.get(), choice, read_only);
  FileDescriptor root;
  IoStatus status = cache->directory_->open_root(/*create=*/false, &root);
  if (status.error() == ENOENT && !read_only) status = cache->directory_->check_required_parent();
  // Anything else (EMFILE, EIO, ESTALE) may pass and is met again where it matters.
  if (is_unusable_directory(status.error())) {
    cache->become_memory_only(status.to_status());
  } else if (!read_only) {
    cache->eviction_ =
        std::make_unique<Eviction>(cache->file_system_.get(), cache->directory_.get(),
                                   EvictionOptions{.max_bytes = cache->options_.max_bytes,
                                                   .budget = cache->options_.eviction_budget,
                                                   .clock = cache->options_.clock,
                                                   .wall_clock = cache->options_.wall_clock});
  }
  return cache;
}

DiskCache::DiskCache(DiskCacheOptions options)
    : options_(std::move(options)), file_system_(options_.file_system) {}

const std::string& DiskCache::path() const {
  return directory_ ? directory_->path() : options_.directory.path;
}

std::string DiskCache::description() const { return "directory " + path(); }

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
    if (!status.is_ok()) return count(miss(status));
    ValidFile valid;
    LookupResult result = read_entry(location, &key, &valid);
    if (result.outcome == LookupOutcome::kHit) touch(valid);
    return count(std::move(result));
  } catch (const std::exception& e) {  // std::bad_alloc
    return count(miss(IoStatus::failure(ENOMEM, e.what())));
  }
}

LookupResult DiskCache::lookup_any_compiler(const Digest& source, const IsBetter& is_better) {
  if (!directory_) return count(LookupResult());
  try {
    return count(lookup_best(source, is_better));
  } catch (const std::exception& e) {  // std::bad_alloc
    return count(miss(IoStatus::failure(ENOMEM, e.what())));
  }
}

LookupResult DiskCache::lookup_best(const Digest& source, const IsBetter& is_better) {
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
  std::sort(names.begin(), names.end());
  const std::string prefix = to_hex(source) + ".";
  LookupResult best;
  ValidFile best_file;
  for (std::string& name : names) {
    if (!is_entry_name(name) || !name.starts_with(prefix)) continue;
    location.name = std::move(name);
    ValidFile valid;
    LookupResult result = read_entry(location, nullptr, &valid);
    const bool is_hit = result.outcome == LookupOutcome::kHit;
    if (best.entry != nullptr && !(is_hit && is_better && is_better(*result.entry, *best.entry))) {
      continue;
    }
    best = std::move(result);  // what is no hit stands for as long as there is none
    best_file = std::move(valid);
  }
  if (best.outcome == LookupOutcome::kHit) touch(best_file);
  return best;
}

LookupResult DiskCache::lookup_file(const std::string& file_name) {
  if (!directory_ || !is_entry_name(file_name)) return count(LookupResult());
  try {
    Location location;
    location.name = file_name;
    for (size_t i = 0; i < location.source.size(); ++i) {
      location.source[i] =
          static_cast<uint8_t>(std::stoul(file_name.substr(2 * i, 2), nullptr, 16));
    }
    const IoStatus status =
        open_shard(/*create=*/false, location.source, &location.version, &location.shard);
    ValidFile valid;
    return count(status.is_ok() ? read_entry(location, nullptr, &valid) : miss(status));
  } catch (const std::exception& e) {  // std::bad_alloc
    return count(miss(IoStatus::failure(ENOMEM, e.what())));
  }
}

bool DiskCache::is_trusted(const struct stat& file) const {
  const bool is_owner_trusted =
      file.st_uid == file_system_->effective_user() || (options_.read_only && file.st_uid == 0);
  return S_ISREG(file.st_mode) && is_owner_trusted && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// One call an hour for each entry that is in use, and its failure costs at most an early eviction.
// A time in the future is as wrong as an old one, but for clocks that differ a little (NFS).
void DiskCache::touch(const ValidFile& used) {
  static constexpr std::chrono::hours kFresh{1};
  if (options_.read_only) return;
  const auto now = options_.wall_clock().time_since_epoch();
  const std::chrono::seconds changed(used.info.st_mtim.tv_sec);
  if (changed <= now - kFresh || changed >= now + kFresh) file_system_->touch(used.file.get());
}

LookupResult DiskCache::read_entry(const Location& location, const Key* key, ValidFile* valid) {
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
  if (!is_trusted(info)) {
    return corrupt(&info, Corruption::kNotPrivateFile,
                   "is not a regular file that only user " +
                       std::to_string(file_system_->effective_user()) + " owns and can write");
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
  valid->file = std::move(file);
  valid->info = info;
  return result;
}

DiskCacheStats DiskCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace pagejit::cache
