#include "cache/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace pagejit::cache {
namespace {

template <class T>
T or_error(T result) {
  return result < 0 ? static_cast<T>(-errno) : result;
}

int set_byte_lock(int fd, off_t offset, short type) {
  struct flock lock {};  // l_pid must be 0
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  return or_error(::fcntl(fd, F_OFD_SETLK, &lock));
}

}  // namespace

int PosixFileSystem::open_at(int dir_fd, const char* path, int flags, mode_t mode) {
  return or_error(::openat(dir_fd, path, flags, mode));
}

ssize_t PosixFileSystem::read(int fd, void* buffer, size_t size) {
  return or_error(::read(fd, buffer, size));
}

ssize_t PosixFileSystem::read_at(int fd, void* buffer, size_t size, off_t offset) {
  return or_error(::pread(fd, buffer, size, offset));
}

ssize_t PosixFileSystem::write(int fd, const void* data, size_t size) {
  return or_error(::write(fd, data, size));
}

int PosixFileSystem::fsync(int fd) { return or_error(::fsync(fd)); }

int PosixFileSystem::close(int fd) { return or_error(::close(fd)); }

int PosixFileSystem::stat_fd(int fd, struct stat* out) { return or_error(::fstat(fd, out)); }

int PosixFileSystem::stat_at(int dir_fd, const char* path, struct stat* out) {
  return or_error(::fstatat(dir_fd, path, out, AT_SYMLINK_NOFOLLOW));
}

int PosixFileSystem::make_directory_at(int dir_fd, const char* path, mode_t mode) {
  return or_error(::mkdirat(dir_fd, path, mode));
}

int PosixFileSystem::rename_at(int from_fd, const char* from, int to_fd, const char* to) {
  return or_error(::renameat(from_fd, from, to_fd, to));
}

int PosixFileSystem::unlink_at(int dir_fd, const char* path, int flags) {
  return or_error(::unlinkat(dir_fd, path, flags));
}

int PosixFileSystem::list_directory(int dir_fd, std::vector<std::string>* names) {
  // fdopendir takes its descriptor over and moves its position, so it gets one of its own.
  const int own_fd = ::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own_fd < 0) return -errno;
  DIR* directory = ::fdopendir(own_fd);
  if (directory == nullptr) {
    const int error = errno;
    ::close(own_fd);
    return -error;
  }
  names->clear();
  errno = 0;
  while (const dirent* item = ::readdir(directory)) {
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
    errno = 0;  // readdir's end and its error differ in errno only
  }
  const int error = errno;
  ::closedir(directory);
  return -error;
}

int PosixFileSystem::touch(int fd) {
  const struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};  // access, modification
  return or_error(::futimens(fd, times));
}

int PosixFileSystem::current_directory(std::string* path) {
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof buffer) == nullptr) return -errno;
  *path = buffer;
  return 0;
}

int PosixFileSystem::lock_byte(int fd, off_t offset) { return set_byte_lock(fd, offset, F_WRLCK); }

int PosixFileSystem::unlock_byte(int fd, off_t offset) {
  return set_byte_lock(fd, offset, F_UNLCK);
}

int PosixFileSystem::random(void* buffer, size_t size) {
  // Up to 256 bytes getrandom() is never interrupted or cut short (getrandom(2)); the cache asks
  // for 16.
  const ssize_t filled = ::getrandom(buffer, size, 0);
  if (filled < 0) return -errno;
  return static_cast<size_t>(filled) == size ? 0 : -EIO;
}

uid_t PosixFileSystem::effective_user() { return ::geteuid(); }

}  // namespace pagejit::cache
