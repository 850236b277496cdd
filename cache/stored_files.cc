#include "cache/stored_files.h"

#include <cerrno>

namespace pagejit::cache {
namespace {

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

bool is_entry_name(std::string_view name) {
  static constexpr size_t kSize = 64 + 1 + 8 + 4;
  return name.size() == kSize && name[64] == '.' && name.ends_with(".pjk") &&
         is_hex(name.substr(0, 64)) && is_hex(name.substr(65, 8));
}

bool is_temporary_name(std::string_view name) {
  return name.size() == 32 + 4 && name.ends_with(".tmp") && is_hex(name.substr(0, 32));
}

bool is_shard_name(std::string_view name) { return name.size() == 2 && is_hex(name); }

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

bool is_older(const StoredFile& a, const StoredFile& b) {
  const struct timespec& x = a.info.st_mtim;
  const struct timespec& y = b.info.st_mtim;
  if (x.tv_sec != y.tv_sec) return x.tv_sec < y.tv_sec;
  if (x.tv_nsec != y.tv_nsec) return x.tv_nsec < y.tv_nsec;
  return a.name < b.name;
}

bool is_left_behind(const struct stat& temporary, std::chrono::system_clock::time_point now) {
  // A publish takes milliseconds; on a device that hangs, minutes.
  static constexpr int64_t kSeconds = 3600;
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  return temporary.st_mtim.tv_sec <= seconds - kSeconds &&
         temporary.st_ctim.tv_sec <= seconds - kSeconds;
}

int list_files(FileSystem* file_system, int dir_fd, bool (*is_wanted)(std::string_view),
               std::vector<StoredFile>* files) {
  files->clear();
  std::vector<std::string> names;
  if (const int result = file_system->list_directory(dir_fd, &names); result < 0) return -result;
  for (std::string& name : names) {
    if (!is_wanted(name)) continue;
    StoredFile file;
    if (file_system->stat_at(dir_fd, name.c_str(), &file.info) < 0) continue;
    if (!S_ISREG(file.info.st_mode)) continue;
    file.name = std::move(name);
    files->push_back(std::move(file));
  }
  return 0;
}

bool remove_file(FileSystem* file_system, int dir_fd, const StoredFile& file) {
  struct stat now;
  return file_system->stat_at(dir_fd, file.name.c_str(), &now) == 0 &&
         is_same_file(file.info, now) && file_system->unlink_at(dir_fd, file.name.c_str(), 0) == 0;
}

}  // namespace pagejit::cache
