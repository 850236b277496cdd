// The writing half of DiskCache.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <string_view>

#include "cache/atomic_file.h"
#include "cache/disk_cache.h"

namespace pagejit::cache {
namespace {

constexpr std::string_view kTagName = "CACHEDIR.TAG";
// The signature is that of https://bford.info/cachedir/; it must be the file's first 43 bytes.
constexpr std::string_view kTagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds compiled kernels of pagejit. All of it can be made again; see\n"
    "# https://bford.info/cachedir/\n";

// Failures that the next publish would most likely meet again; not, for example, EMFILE or ESTALE.
bool is_lasting(int error) {
  return is_unusable_directory(error) || error == ENOSPC || error == EDQUOT || error == EROFS ||
         error == EIO;
}

// The directory was removed or replaced under our feet (rm -rf, another NFS client): it can be
// opened or made anew.
bool is_replaced_directory(int error) { return error == ENOENT || error == ESTALE; }

}  // namespace

Status DiskCache::publish(const Entry& entry) {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!directory_) {
        ++stats_.publish_skips;
        return memory_only_reason_;
      }
      if (options_.read_only) {
        ++stats_.publish_skips;
        return Status(StatusCode::kCacheError, path() + " is only read: nothing is stored there");
      }
      if (backoff_.count() > 0 && options_.clock() < publish_again_at_) {
        ++stats_.publish_skips;
        return Status(StatusCode::kCacheError, "publishing pauses after: " + backoff_reason_);
      }
    }
    const Result<std::string> bytes = encode_entry(entry);
    if (!bytes.is_ok()) return bytes.status();

    // A directory that vanishes three times in a row is not coming back.
    static constexpr int kMaxAttempts = 3;
    IoStatus status = write_entry(entry.key, *bytes);
    for (int attempt = 1; attempt < kMaxAttempts && is_replaced_directory(status.error());
         ++attempt) {
      status = write_entry(entry.key, *bytes);
    }
    return finish_publish(status);
  } catch (const std::exception& e) {  // std::bad_alloc
    return finish_publish(IoStatus::failure(ENOMEM, e.what()));
  }
}

Status DiskCache::finish_publish(const IoStatus& status) {
  static constexpr std::chrono::seconds kFirstBackoff{1};
  static constexpr std::chrono::seconds kLongestBackoff{64};
  if (!status.is_ok()) {
    if (is_lasting(status.error())) warn(status.to_status());
    const auto now = options_.clock();
    const std::lock_guard lock(mutex_);
    ++stats_.publish_failures[status.error()];
    // Threads that fail together double the pause once, not once each.
    if (is_lasting(status.error()) && (backoff_.count() == 0 || now >= publish_again_at_)) {
      backoff_ = std::min(std::max(kFirstBackoff, 2 * backoff_), kLongestBackoff);
      publish_again_at_ = now + backoff_;
      backoff_reason_ = status.message();
    }
    return status.to_status();
  }
  const std::lock_guard lock(mutex_);
  ++stats_.published;
  backoff_ = std::chrono::seconds(0);
  return Status::ok();
}

IoStatus DiskCache::write_entry(const Key& key, const std::string& bytes) {
  FileDescriptor version;
  FileDescriptor shard;
  if (IoStatus status = open_shard(/*create=*/true, key.source, &version, &shard);
      !status.is_ok()) {
    return status;
  }
  FileDescriptor tmp;
  if (IoStatus status = directory_->open_folder(version, "tmp", /*create=*/true, &tmp);
      !status.is_ok()) {
    return status;
  }
  AtomicFile file(file_system_.get(), tmp.get());
  if (IoStatus status = file.create(); !status.is_ok()) return status;
  if (IoStatus status = file.write(bytes); !status.is_ok()) return status;
  if (IoStatus status = file.commit(shard.get(), key.file_name()); !status.is_ok()) {
    return status;
  }
  write_tag(version, tmp);
  evict(version, key, bytes.size());
  return IoStatus();
}

// The entry is published whatever happens here.
void DiskCache::evict(const FileDescriptor& version, const Key& key, uint64_t bytes) {
  try {
    const EvictionCounts counts = eviction_->after_publish(version, key.file_name(), bytes);
    const std::lock_guard lock(mutex_);
    stats_.evictions += counts.evictions;
    stats_.evicted_bytes += counts.evicted_bytes;
    stats_.temporaries_removed += counts.temporaries_removed;
    stats_.longest_eviction = std::max(stats_.longest_eviction, counts.duration);
  } catch (const std::exception&) {  // std::bad_alloc; the next publish goes on with it
  }
}

// In v1 and not above it: the directory itself is the user's choice and may hold things worth a
// backup. A tag that cannot be written is tried again by the next publish.
void DiskCache::write_tag(const FileDescriptor& version, const FileDescriptor& tmp) {
  const std::string name(kTagName);
  struct stat info;
  if (file_system_->stat_at(version.get(), name.c_str(), &info) != -ENOENT) return;
  AtomicFile file(file_system_.get(), tmp.get());
  if (!file.create().is_ok() || !file.write(kTagText).is_ok()) return;
  const IoStatus ignored = file.commit(version.get(), name);
  static_cast<void>(ignored);
}

}  // namespace pagejit::cache
