#include "cache/file_io.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace pagejit::cache {

IoStatus IoStatus::failure(int error, std::string_view what) {
  IoStatus status;
  status.error_ = error;
  status.message_ = std::string(what) + ": " + std::generic_category().message(error);
  return status;
}

IoStatus IoStatus::refusal(std::string message) {
  IoStatus status;
  status.error_ = EPERM;
  status.message_ = std::move(message);
  return status;
}

Status IoStatus::to_status() const {
  return is_ok() ? Status::ok() : Status(StatusCode::kCacheError, message_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    file_system_ = other.file_system_;
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

int FileDescriptor::close() {
  if (fd_ < 0) return 0;
  const int error = -file_system_->close(std::exchange(fd_, -1));
  return error == EINTR ? 0 : error;
}

namespace {

int open_again_when_interrupted(FileSystem* file_system, int dir_fd, const std::string& path,
                                int flags, mode_t mode, FileDescriptor* out) {
  int fd;
  do {
    fd = file_system->open_at(dir_fd, path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd == -EINTR);
  if (fd < 0) return -fd;
  *out = FileDescriptor(file_system, fd);
  return 0;
}

}  // namespace

int open_file(FileSystem* file_system, int dir_fd, const std::string& path, int flags, mode_t mode,
              FileDescriptor* out) {
  return open_again_when_interrupted(file_system, dir_fd, path, flags | O_NOFOLLOW, mode, out);
}

int open_named_file(FileSystem* file_system, const std::string& path, int flags, mode_t mode,
                    FileDescriptor* out) {
  return open_again_when_interrupted(file_system, AT_FDCWD, path, flags, mode, out);
}

int write_all(FileSystem* file_system, int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = file_system->write(fd, bytes.data(), bytes.size());
    if (written == -EINTR) continue;
    if (written < 0) return static_cast<int>(-written);
    if (written == 0) return EIO;  // no progress and no reason: do not spin
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int sync_file(FileSystem* file_system, int fd) {
  int result;
  do {
    result = file_system->fsync(fd);
  } while (result == -EINTR);
  return -result;
}

int read_all(FileSystem* file_system, int fd, size_t size_hint, size_t max_bytes,
             std::string* out) {
  static constexpr size_t kMinStepBytes = 4096;  // a page: a file that grew costs few calls
  out->clear();
  size_t step = std::min(size_hint, max_bytes);
  while (true) {
    // One byte more than expected, so that the common file ends in a read that returns 0 without
    // growing the buffer.
    const size_t begin = out->size();
    out->resize(std::min(begin + std::max(step, kMinStepBytes), max_bytes + 1));
    const size_t room = out->size() - begin;
    ssize_t num_read;
    do {
      num_read = file_system->read(fd, out->data() + begin, room);
    } while (num_read == -EINTR);
    out->resize(begin + static_cast<size_t>(std::max<ssize_t>(num_read, 0)));
    if (num_read < 0) return static_cast<int>(-num_read);
    if (num_read == 0) return 0;
    if (out->size() > max_bytes) return EFBIG;
    step = size_hint > out->size() ? size_hint - out->size() : 0;
  }
}

int read_range(FileSystem* file_system, int fd, uint64_t offset, size_t size, std::string* out) {
  out->resize(size);
  size_t num_done = 0;
  while (num_done < size) {
    const ssize_t num_read = file_system->read_at(fd, out->data() + num_done, size - num_done,
                                                  static_cast<off_t>(offset + num_done));
    if (num_read == -EINTR) continue;
    if (num_read < 0) {
      out->clear();
      return static_cast<int>(-num_read);
    }
    if (num_read == 0) break;
    num_done += static_cast<size_t>(num_read);
  }
  out->resize(num_done);
  return 0;
}

}  // namespace pagejit::cache
