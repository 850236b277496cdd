// AtomicFile: a file that is either published whole under its name or not at all. It is written
// under a random name in a directory for temporaries and renamed by commit(). Not a lock: of two
// writers of one name the later commit stays. Thread-safety: one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "cache/file_io.h"

namespace pagejit::cache {

// Every function returns the first error; after one, the only sensible call is the destructor.
class AtomicFile {
 public:
  // tmp_dir_fd: an open directory on the file system of the final place; it must stay open as long
  // as this object.
  AtomicFile(FileSystem* file_system, int tmp_dir_fd)
      : file_system_(file_system), tmp_dir_fd_(tmp_dir_fd) {}
  // Removes the temporary unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Creates the temporary by a name that nobody can guess or have made before. 0600: what the cache
  // stores is the user's own.
  IoStatus create(mode_t mode = 0600);
  IoStatus write(std::string_view bytes);
  // Syncs, closes and renames to `name` in dir_fd. The bytes are on the device before the name
  // shows them, so a crash of the machine leaves no empty file; the name itself may be lost then,
  // which is only a miss.
  IoStatus commit(int dir_fd, const std::string& name);

 private:
  FileSystem* file_system_;
  int tmp_dir_fd_;
  std::string tmp_name_;  // empty: there is no temporary to remove
  FileDescriptor file_;
};

}  // namespace pagejit::cache
