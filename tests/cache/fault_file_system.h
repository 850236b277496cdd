// FaultFileSystem: the real file system, but a chosen call fails, is cut short, is interrupted, or
// kills the process. For tests only. Thread-safety: calls may come from several threads; the
// settings are made before.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/file_system.h"

namespace pagejit::cache {

enum class Call {
  kOpen,
  kRead,
  kReadAt,
  kWrite,
  kFsync,
  kClose,
  kStatFd,
  kStatAt,
  kMakeDirectory,
  kRename,
  kUnlink,
  kList,
  kTouch,
  kCurrentDirectory,
  kLock,
  kUnlock,
  kRandom,
};

class FaultFileSystem final : public FileSystem {
 public:
  // Called before each call with its number (from 0) and kind. Returns 0 to let it through, or the
  // errno to fail with; it may also end the process. A failing close still closes, like Linux.
  std::function<int(int index, Call call)> before;
  // Called after each open that succeeded.
  std::function<void(const std::string& path)> after_open;
  // If set, a failing rename has moved the file all the same, as may happen on NFS.
  bool failed_rename_moves = false;
  size_t max_transfer_bytes = SIZE_MAX;  // of one read or write
  bool interrupt_everything = false;  // every first try of open, read, write, fsync, lock is EINTR
  std::optional<uid_t> user;          // what effective_user() says
  std::optional<unsigned char> constant_random;

  int num_calls() const { return num_calls_; }
  std::vector<Call> calls() const;

  // Fails only call number `index`, or every call of a kind.
  void fail_at(int index, int error);
  void fail_every(Call call, int error);
  void fail_nothing();

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

 private:
  int fault(Call call);
  bool interrupted();

  PosixFileSystem real_;
  std::atomic<int> num_calls_{0};
  std::atomic<unsigned> num_interruptible_{0};
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
};

}  // namespace pagejit::cache
