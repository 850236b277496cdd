// What lies in a folder of the cache directory: names, sizes and times, for those who remove files.
// It reads no file. Thread-safety: free functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/file_system.h"

namespace pagejit::cache {

struct StoredFile {
  std::string name;
  struct stat info {};

  uint64_t bytes() const { return static_cast<uint64_t>(info.st_size); }
};

// "<64 hex>.<8 hex>.pjk" and "<32 hex>.tmp", lower-case: what the cache makes. Other names are
// somebody else's (NFS, for example, keeps files that are open as .nfs*) and are left alone.
bool is_entry_name(std::string_view name);
bool is_temporary_name(std::string_view name);
// The names of folders of entries: two hexadecimal digits.
bool is_shard_name(std::string_view name);

// Whether two looks at a name saw one file. Inode numbers are reused at once by some file systems,
// so times count too.
bool is_same_file(const struct stat& a, const struct stat& b);

// Whether a was last changed before b; of equally old ones the smaller name comes first.
bool is_older(const StoredFile& a, const StoredFile& b);

// Whether a temporary was left behind: not a byte of it and nothing else of the file has changed
// for an hour. A time in the future is no age, and a copied file has a recent time of change
// whatever its modification time says. (A temporary that is removed all the same, after a clock was
// set forward, costs its publisher one more attempt.)
bool is_left_behind(const struct stat& temporary, std::chrono::system_clock::time_point now);

// The regular files in an open folder whose names `is_wanted`; what vanishes meanwhile is left out.
// 0 or a positive errno.
int list_files(FileSystem* file_system, int dir_fd, bool (*is_wanted)(std::string_view),
               std::vector<StoredFile>* files);

// Removes the file, unless another one has its name meanwhile. Whether it was removed.
bool remove_file(FileSystem* file_system, int dir_fd, const StoredFile& file);

}  // namespace pagejit::cache
