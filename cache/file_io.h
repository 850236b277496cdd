// What the cache does with descriptors: IoStatus (an errno with its sentence), an owned descriptor,
// and whole reads and writes that survive interruption and short counts. Not for files outside the
// cache. Thread-safety: values; a FileDescriptor belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cache/file_system.h"
#include "pagejit/status.h"

namespace pagejit::cache {

// Success, or an errno (counters and decisions go by it) and a sentence that names the call and the
// file.
class [[nodiscard]] IoStatus {
 public:
  IoStatus() = default;
  // "<what>: <text of the error>". error is positive.
  static IoStatus failure(int error, std::string_view what);
  // For a file that exists and works but is refused, e.g. for its owner: EPERM with this sentence.
  static IoStatus refusal(std::string message);

  bool is_ok() const { return error_ == 0; }
  int error() const { return error_; }  // 0 on success
  const std::string& message() const { return message_; }
  // kCacheError with the message; ok on success.
  Status to_status() const;

 private:
  int error_ = 0;
  std::string message_;
};

// Closes its descriptor when destroyed. Empty (get() == -1) by default.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  FileDescriptor(FileSystem* file_system, int fd) : file_system_(file_system), fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : file_system_(other.file_system_), fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // 0 or a positive errno. Writers must look at it: a delayed write error may be reported only
  // here. Interrupted is closed, so EINTR counts as success.
  int close();

 private:
  FileSystem* file_system_ = nullptr;
  int fd_ = -1;
};

// open_at with O_CLOEXEC and O_NOFOLLOW added, again when interrupted. Returns 0 or a positive
// errno.
int open_file(FileSystem* file_system, int dir_fd, const std::string& path, int flags, mode_t mode,
              FileDescriptor* out);

// The same for a path that a person named: a symbolic link is followed.
int open_named_file(FileSystem* file_system, const std::string& path, int flags, mode_t mode,
                    FileDescriptor* out);

// Write all bytes, sync to the device, and read to the end of the file but at most max_bytes. 0 or
// a positive errno.
int write_all(FileSystem* file_system, int fd, std::string_view bytes);
int sync_file(FileSystem* file_system, int fd);
int read_all(FileSystem* file_system, int fd, size_t size_hint, size_t max_bytes, std::string* out);
// Sets *out to the `size` bytes from `offset`, fewer where the file ends before. 0 or a positive
// errno. offset + size must fit an off_t.
int read_range(FileSystem* file_system, int fd, uint64_t offset, size_t size, std::string* out);

}  // namespace pagejit::cache
