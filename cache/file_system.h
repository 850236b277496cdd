// FileSystem: the system calls that the cache makes, one virtual function each, so that tests can
// make any of them fail at any time. Not a portability layer and not convenient: file_io.h is what
// the cache's own code calls. Thread-safety: PosixFileSystem has no state; a stand-in must allow
// calls from several threads.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace pagejit::cache {

// Every function returns what its system call returns, but -errno where that sets errno. None
// throws or allocates, except list_directory and current_directory.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual int open_at(int dir_fd, const char* path, int flags, mode_t mode) = 0;
  virtual ssize_t read(int fd, void* buffer, size_t size) = 0;
  // pread(2): from `offset` of the file, without moving its position.
  virtual ssize_t read_at(int fd, void* buffer, size_t size, off_t offset) = 0;
  virtual ssize_t write(int fd, const void* data, size_t size) = 0;
  virtual int fsync(int fd) = 0;
  // The descriptor is gone afterwards whatever is returned, as on Linux: never call it twice.
  virtual int close(int fd) = 0;
  virtual int stat_fd(int fd, struct stat* out) = 0;
  // Does not follow a symbolic link in the last component.
  virtual int stat_at(int dir_fd, const char* path, struct stat* out) = 0;
  virtual int make_directory_at(int dir_fd, const char* path, mode_t mode) = 0;
  virtual int rename_at(int from_fd, const char* from, int to_fd, const char* to) = 0;
  // flags as unlinkat(2).
  virtual int unlink_at(int dir_fd, const char* path, int flags) = 0;
  // The names in an open directory, "." and ".." left out, in no order.
  virtual int list_directory(int dir_fd, std::vector<std::string>* names) = 0;
  // Sets the modification time to the file system's present time. The file may be open for reading
  // only, but must belong to the effective user.
  virtual int touch(int fd) = 0;
  virtual int current_directory(std::string* path) = 0;
  // Takes the exclusive OFD lock (fcntl(2)) of one byte, which need not exist; -EAGAIN where it is
  // held through another open file. The lock goes when it is given back, or when the last
  // descriptor of this open file is closed.
  virtual int lock_byte(int fd, off_t offset) = 0;
  virtual int unlock_byte(int fd, off_t offset) = 0;
  // Fills the buffer with random bytes.
  virtual int random(void* buffer, size_t size) = 0;
  virtual uid_t effective_user() = 0;
};

class PosixFileSystem final : public FileSystem {
 public:
  int open_at(int dir_fd, const char* path, int flags, mode_t mode) override;
  ssize_t read(int fd, void* buffer, size_t size) override;
  ssize_t read_at(int fd, void* buffer, size_t size, off_t offset) override;
  ssize_t write(int fd, const void* data, size_t size) override;
  int fsync(int fd) override;
  int close(int fd) override;
  int stat_fd(int fd, struct stat* out) override;
  int stat_at(int dir_fd, const char* path, struct stat* out) override;
  int make_directory_at(int dir_fd, const char* path, mode_t mode) override;
  int rename_at(int from_fd, const char* from, int to_fd, const char* to) override;
  int unlink_at(int dir_fd, const char* path, int flags) override;
  int list_directory(int dir_fd, std::vector<std::string>* names) override;
  int touch(int fd) override;
  int current_directory(std::string* path) override;
  int lock_byte(int fd, off_t offset) override;
  int unlock_byte(int fd, off_t offset) override;
  int random(void* buffer, size_t size) override;
  uid_t effective_user() override;
};

}  // namespace pagejit::cache
