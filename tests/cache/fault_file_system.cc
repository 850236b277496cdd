#include "tests/cache/fault_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pagejit::cache {

std::vector<Call> FaultFileSystem::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FaultFileSystem::fail_at(int index, int error) {
  const int base = num_calls_;
  before = [=](int i, Call) { return i - base == index ? error : 0; };
}

void FaultFileSystem::fail_every(Call call, int error) {
  before = [=](int, Call c) { return c == call ? error : 0; };
}

void FaultFileSystem::fail_nothing() { before = nullptr; }

int FaultFileSystem::fault(Call call) {
  const int index = num_calls_++;
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  return before ? before(index, call) : 0;
}

bool FaultFileSystem::interrupted() {
  return interrupt_everything && num_interruptible_++ % 2 == 0;
}

int FaultFileSystem::open_at(int dir_fd, const char* path, int flags, mode_t mode) {
  if (interrupted()) return -EINTR;
  const int error = fault(Call::kOpen);
  if (error != 0) return -error;
  const int fd = real_.open_at(dir_fd, path, flags, mode);
  if (fd >= 0 && after_open) after_open(path);
  return fd;
}

ssize_t FaultFileSystem::read(int fd, void* buffer, size_t size) {
  if (interrupted()) return -EINTR;
  const int error = fault(Call::kRead);
  return error != 0 ? -error : real_.read(fd, buffer, std::min(size, max_transfer_bytes));
}

ssize_t FaultFileSystem::read_at(int fd, void* buffer, size_t size, off_t offset) {
  if (interrupted()) return -EINTR;
  const int error = fault(Call::kReadAt);
  return error != 0 ? -error
                    : real_.read_at(fd, buffer, std::min(size, max_transfer_bytes), offset);
}

ssize_t FaultFileSystem::write(int fd, const void* data, size_t size) {
  if (interrupted()) return -EINTR;
  const int error = fault(Call::kWrite);
  return error != 0 ? -error : real_.write(fd, data, std::min(size, max_transfer_bytes));
}

int FaultFileSystem::fsync(int fd) {
  if (interrupted()) return -EINTR;
  const int error = fault(Call::kFsync);
  return error != 0 ? -error : real_.fsync(fd);
}

int FaultFileSystem::close(int fd) {
  const int error = fault(Call::kClose);
  const int result = real_.close(fd);
  return error != 0 ? -error : result;
}

int FaultFileSystem::stat_fd(int fd, struct stat* out) {
  const int error = fault(Call::kStatFd);
  return error != 0 ? -error : real_.stat_fd(fd, out);
}

int FaultFileSystem::stat_at(int dir_fd, const char* path, struct stat* out) {
  const int error = fault(Call::kStatAt);
  return error != 0 ? -error : real_.stat_at(dir_fd, path, out);
}

int FaultFileSystem::make_directory_at(int dir_fd, const char* path, mode_t mode) {
  const int error = fault(Call::kMakeDirectory);
  return error != 0 ? -error : real_.make_directory_at(dir_fd, path, mode);
}

int FaultFileSystem::rename_at(int from_fd, const char* from, int to_fd, const char* to) {
  const int error = fault(Call::kRename);
  if (error != 0 && !failed_rename_moves) return -error;
  const int result = real_.rename_at(from_fd, from, to_fd, to);
  return error != 0 ? -error : result;
}

int FaultFileSystem::unlink_at(int dir_fd, const char* path, int flags) {
  const int error = fault(Call::kUnlink);
  return error != 0 ? -error : real_.unlink_at(dir_fd, path, flags);
}

int FaultFileSystem::list_directory(int dir_fd, std::vector<std::string>* names) {
  const int error = fault(Call::kList);
  return error != 0 ? -error : real_.list_directory(dir_fd, names);
}

int FaultFileSystem::touch(int fd) {
  const int error = fault(Call::kTouch);
  return error != 0 ? -error : real_.touch(fd);
}

int FaultFileSystem::current_directory(std::string* path) {
  const int error = fault(Call::kCurrentDirectory);
  return error != 0 ? -error : real_.current_directory(path);
}

int FaultFileSystem::lock_byte(int fd, off_t offset) {
  if (interrupted()) return -EINTR;
  const int error = fault(Call::kLock);
  return error != 0 ? -error : real_.lock_byte(fd, offset);
}

int FaultFileSystem::unlock_byte(int fd, off_t offset) {
  const int error = fault(Call::kUnlock);
  return error != 0 ? -error : real_.unlock_byte(fd, offset);
}

int FaultFileSystem::random(void* buffer, size_t size) {
  const int error = fault(Call::kRandom);
  if (error != 0) return -error;
  if (constant_random) {
    std::memset(buffer, *constant_random, size);
    return 0;
  }
  return real_.random(buffer, size);
}

uid_t FaultFileSystem::effective_user() { return user ? *user : real_.effective_user(); }

}  // namespace pagejit::cache
