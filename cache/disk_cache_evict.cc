#include "cache/disk_cache_evict.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "cache/process_lock.h"

namespace pagejit::cache {
namespace {

// How many system calls are made between two looks at the clock: some 50 us on a local disk.
constexpr size_t kCallsPerLook = 16;

// How many entries a call evicts whatever the time, where there are too many: more than the one
// that was published, so that the limit is met on a slow file system too.
constexpr size_t kLeastEvictions = 3;

// In how many folders it tries to: one may hold a single entry.
constexpr int kMaxLateTurns = 2;

std::string shard_name(size_t index) {
  const char byte = static_cast<char>(index);
  return to_hex(std::string_view(&byte, 1));
}

size_t shard_index(const std::string& name) { return std::strtoul(name.c_str(), nullptr, 16); }

struct timespec to_timespec(std::chrono::system_clock::time_point time) {
  return {.tv_sec = std::chrono::system_clock::to_time_t(time), .tv_nsec = 0};
}

bool is_before(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

Eviction::Eviction(FileSystem* file_system, const CacheDirectory* directory,
                   EvictionOptions options)
    : file_system_(file_system), directory_(directory), options_(std::move(options)) {}

bool Eviction::is_over(std::chrono::steady_clock::time_point deadline) const {
  return options_.clock() >= deadline;
}

EvictionCounts Eviction::after_publish(const FileDescriptor& version, const std::string& name,
                                       uint64_t bytes) {
  EvictionCounts counts;
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard) return counts;  // another thread is at it
  const auto begin = options_.clock();
  if (!has_begun_ || begin >= temporaries_at_) {
    // As often as a temporary can become old enough to go.
    temporaries_at_ = begin + std::chrono::hours(1);
    remove_temporaries(version, &counts);
  }
  FileDescriptor objects;
  if (options_.max_bytes > 0 &&
      directory_->open_folder(version, "objects", /*create=*/false, &objects).is_ok()) {
    const size_t own = shard_index(name.substr(0, 2)) % kNumShards;
    Shard& shard = shards_[own];
    // An entry that was replaced is counted twice until the next look; so is what others publish
    // not at all.
    if (shard.is_known) {
      if (shard.entries == 0) shard.oldest = to_timespec(options_.wall_clock());
      shard.bytes += bytes;
      ++shard.entries;
    }
    // Entries spread evenly, so everyone who begins at his own begins somewhere else.
    if (!has_begun_) next_shard_ = own;
    // Half of the time for looking, so that some is left for evicting in any case.
    survey(objects, begin + options_.budget / 2);
    if (estimated_bytes() > (is_evicting_ ? target_bytes() : options_.max_bytes)) {
      evict(version, objects, name, begin + options_.budget, &counts);
    }
    is_evicting_ = is_evicting_ && estimated_bytes() > target_bytes();
  }
  has_begun_ = true;
  counts.duration = std::chrono::duration_cast<std::chrono::microseconds>(options_.clock() - begin);
  return counts;
}

void Eviction::remove_temporaries(const FileDescriptor& version, EvictionCounts* counts) {
  const auto deadline = options_.clock() + options_.budget / 4;
  FileDescriptor tmp;
  std::vector<std::string> names;
  if (!directory_->open_folder(version, "tmp", /*create=*/false, &tmp).is_ok() ||
      file_system_->list_directory(tmp.get(), &names) < 0) {
    return;
  }
  const auto now = options_.wall_clock();
  for (std::string& name : names) {
    StoredFile file;
    file.name = std::move(name);
    if (!is_temporary_name(file.name) ||
        file_system_->stat_at(tmp.get(), file.name.c_str(), &file.info) < 0) {
      continue;
    }
    if (is_over(deadline)) return;
    if (S_ISREG(file.info.st_mode) && is_left_behind(file.info, now) &&
        remove_file(file_system_, tmp.get(), file)) {
      ++counts->temporaries_removed;
    }
  }
}

// Looks at one more folder, and at further ones while there are some that were never looked at and
// time is left.
void Eviction::survey(const FileDescriptor& objects,
                      std::chrono::steady_clock::time_point deadline) {
  std::vector<std::string> names;
  if (file_system_->list_directory(objects.get(), &names) < 0) return;
  std::array<bool, kNumShards> exists{};
  for (const std::string& name : names) {
    if (is_shard_name(name)) exists[shard_index(name)] = true;
  }
  bool all_known = true;
  for (size_t i = 0; i < kNumShards; ++i) {
    if (!exists[i]) shards_[i] = Shard{.is_known = true};
    all_known = all_known && shards_[i].is_known;
  }
  for (size_t i = 0; i < kNumShards; ++i) {
    const size_t index = next_shard_;
    next_shard_ = (next_shard_ + 1) % kNumShards;
    if (!exists[index] || (!all_known && shards_[index].is_known)) continue;
    FileDescriptor folder;
    std::vector<StoredFile> files;
    look_at(objects, index, deadline, &folder, &files);
    if (all_known || is_over(deadline)) return;
  }
}

// Reads the sizes and times of a folder's entries. Where there are more than the time allows, those
// that it has seen stand for the others. Whether the folder could be read.
bool Eviction::look_at(const FileDescriptor& objects, size_t index,
                       std::chrono::steady_clock::time_point deadline, FileDescriptor* folder,
                       std::vector<StoredFile>* files) {
  Shard& shard = shards_[index];
  files->clear();
  std::vector<std::string> names;
  if (!directory_->open_folder(objects, shard_name(index), /*create=*/false, folder).is_ok() ||
      file_system_->list_directory(folder->get(), &names) < 0) {
    shard = Shard{.is_known = true};  // removed, or of no use: nothing there counts
    return false;
  }
  uint64_t bytes = 0;
  size_t num_seen = 0;
  for (std::string& name : names) {
    // The first ones whatever the time, or a slow file system would never be known.
    if (num_seen > 0 && num_seen % kCallsPerLook == 0 && is_over(deadline)) break;
    ++num_seen;
    StoredFile file;
    if (!is_entry_name(name) ||
        file_system_->stat_at(folder->get(), name.c_str(), &file.info) < 0 ||
        !S_ISREG(file.info.st_mode)) {
      continue;
    }
    file.name = std::move(name);
    bytes += file.bytes();
    files->push_back(std::move(file));
  }
  std::sort(files->begin(), files->end(), is_older);
  const double scale =
      num_seen == 0 ? 1.0 : static_cast<double>(names.size()) / static_cast<double>(num_seen);
  shard.is_known = true;
  shard.bytes = static_cast<uint64_t>(static_cast<double>(bytes) * scale);
  shard.entries = static_cast<uint64_t>(static_cast<double>(files->size()) * scale);
  shard.seen = files->size();
  if (!files->empty()) shard.oldest = files->front().info.st_mtim;
  return true;
}

// Of all entries, from the folders that are known; 0 where these are too few to tell.
uint64_t Eviction::estimated_bytes() const {
  // Names are digests, so folders are samples: of so many entries of like sizes the sum is right to
  // 6 %. On a slow file system each publish sees sixteen of them.
  static constexpr uint64_t kEnoughEntries = 250;
  uint64_t bytes = 0;
  uint64_t num_seen = 0;
  size_t num_known = 0;
  for (const Shard& shard : shards_) {
    if (!shard.is_known) continue;
    ++num_known;
    bytes += shard.bytes;
    num_seen += shard.seen;
  }
  if (num_known == kNumShards) return bytes;
  if (num_seen < kEnoughEntries) return 0;
  return static_cast<uint64_t>(static_cast<double>(bytes) * kNumShards /
                               static_cast<double>(num_known));
}

// The folder with the oldest entry first. A process that is at it already is enough.
void Eviction::evict(const FileDescriptor& version, const FileDescriptor& objects,
                     const std::string& keep, std::chrono::steady_clock::time_point deadline,
                     EvictionCounts* counts) {
  ProcessLock lock;
  // Where locks do not work it goes on without: two that evict at once evict a little too much.
  if (lock.open(file_system_, version.get()).is_ok() && lock.try_take_for_removal() == EAGAIN) {
    return;
  }
  is_evicting_ = true;
  for (Shard& shard : shards_) shard.is_exhausted = shard.is_fresh = false;
  for (int late_turns = 0; estimated_bytes() > target_bytes();) {
    if (is_over(deadline) &&
        (counts->evictions >= kLeastEvictions || late_turns++ == kMaxLateTurns)) {
      return;
    }
    const size_t oldest = oldest_shard();
    if (oldest == kNumShards) return;
    evict_from(objects, oldest, keep, deadline, counts);
  }
}

// kNumShards where there is nothing to evict.
size_t Eviction::oldest_shard() const {
  size_t oldest = kNumShards;
  for (size_t i = 0; i < kNumShards; ++i) {
    const Shard& shard = shards_[i];
    if (!shard.is_known || shard.entries == 0 || shard.is_exhausted) continue;
    if (oldest == kNumShards || is_before(shard.oldest, shards_[oldest].oldest)) oldest = i;
  }
  return oldest;
}

// At most a tenth of the folder, and at least one entry: a tenth's worth of looking for each. Where
// the time is over, kLeastEvictions.
void Eviction::evict_from(const FileDescriptor& objects, size_t index, const std::string& keep,
                          std::chrono::steady_clock::time_point deadline, EvictionCounts* counts) {
  Shard& shard = shards_[index];
  FileDescriptor folder;
  std::vector<StoredFile> files;
  if (!look_at(objects, index, deadline, &folder, &files)) return;
  // Its oldest entry has been used or removed since the last look: then it is another folder's
  // turn, but only once, since others may use entries all the time, and while there is time.
  const bool is_late = is_over(deadline);
  if (const size_t oldest = oldest_shard();
      !std::exchange(shard.is_fresh, true) && !is_late &&
      (oldest == kNumShards || is_before(shards_[oldest].oldest, shard.oldest))) {
    return;
  }
  const size_t limit = std::max(is_late ? kLeastEvictions : 1, files.size() / 10);
  size_t num_removed = 0;
  const StoredFile* first_kept = nullptr;
  for (const StoredFile& file : files) {
    const bool stops = num_removed == limit || estimated_bytes() <= target_bytes() ||
                       (counts->evictions >= kLeastEvictions && is_over(deadline));
    if (stops || file.name == keep || !remove_file(file_system_, folder.get(), file)) {
      if (first_kept == nullptr) first_kept = &file;
      if (stops) break;
      continue;
    }
    ++num_removed;
    ++counts->evictions;
    counts->evicted_bytes += file.bytes();
    shard.bytes -= std::min(shard.bytes, file.bytes());
    shard.entries -= std::min<uint64_t>(shard.entries, 1);
  }
  if (first_kept != nullptr) shard.oldest = first_kept->info.st_mtim;
  shard.is_exhausted = num_removed == 0;
}

}  // namespace pagejit::cache
