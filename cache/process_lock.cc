#include "cache/process_lock.h"

#include <fcntl.h>
#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "cache/little_endian.h"
#include "cache/sha256.h"

namespace pagejit::cache {

// The one state of the cache that belongs to the process, since pthread_atfork's handlers take no
// argument. The mutex is held from just before a fork until just after it, in both processes, and
// else for a few instructions without a system call, so neither can wait long.
struct ProcessLock::ForkHandlers {
  static inline constinit std::mutex mutex;  // guards what follows
  static inline constinit ProcessLock* first = nullptr;
  static inline constinit uint64_t num_forks = 0;

  static void before_fork() {
    mutex.lock();
    ++num_forks;
  }

  static void in_parent() { mutex.unlock(); }

  static void in_child() {
    while (first != nullptr) {
      ProcessLock& lock = *first;
      lock.unlist();
      lock.is_taken_ = false;
      lock.file_.close();
    }
    mutex.unlock();
  }

  // When the library is loaded: later, a fork could meet a registration half done.
  static const int registration_error;
};

const int ProcessLock::ForkHandlers::registration_error =
    ::pthread_atfork(before_fork, in_parent, in_child);

namespace {

off_t offset_of(const Key& key) {
  static_assert(sizeof(off_t) == 8, "compile with _FILE_OFFSET_BITS=64");
  const uint64_t bits = load_little_endian(as_bytes(key.source), 0, 8) ^
                        load_little_endian(as_bytes(key.compiler), 0, 8);
  return static_cast<off_t>(bits & ~(uint64_t{3} << 62));  // positive, and so is the next offset
}

constexpr off_t kRemovalOffset = off_t{1} << 62;  // above those of all keys

}  // namespace

IoStatus ProcessLock::open(FileSystem* file_system, int dir_fd) {
  release();
  file_system_ = file_system;
  if (ForkHandlers::registration_error != 0) {
    return IoStatus::failure(ForkHandlers::registration_error, "pthread_atfork");
  }
  // A child that was forked between open and enlisting has the file for good, so this process must
  // take no lock through it. A program that forks this often has to do without.
  static constexpr int kMaxAttempts = 4;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    uint64_t num_forks;
    {
      const std::lock_guard guard(ForkHandlers::mutex);
      num_forks = ForkHandlers::num_forks;
    }
    // O_NONBLOCK: the name might be a FIFO.
    FileDescriptor file;
    const int error = open_file(file_system, dir_fd, "lock",
                                O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY, 0600, &file);
    if (error != 0) return IoStatus::failure(error, "open v1/lock");
    const std::lock_guard guard(ForkHandlers::mutex);
    if (num_forks != ForkHandlers::num_forks) continue;
    file_ = std::move(file);
    enlist();
    return IoStatus();
  }
  return IoStatus::failure(EBUSY, "open v1/lock between two forks");
}

int ProcessLock::try_take(const Key& key) { return try_take_byte(offset_of(key)); }

int ProcessLock::try_take_for_removal() { return try_take_byte(kRemovalOffset); }

int ProcessLock::try_take_byte(off_t offset) {
  offset_ = offset;
  int result;
  do {
    result = file_system_->lock_byte(file_.get(), offset_);
  } while (result == -EINTR);
  is_taken_ = result == 0;
  return -result;
}

void ProcessLock::release() {
  if (!file_.is_open()) return;
  // Closing would not be enough while a child that was made past the handlers shares the file.
  if (is_taken_) file_system_->unlock_byte(file_.get(), offset_);
  is_taken_ = false;
  {
    const std::lock_guard guard(ForkHandlers::mutex);
    unlist();
  }
  file_.close();
}

void ProcessLock::enlist() {
  next_ = ForkHandlers::first;
  if (next_ != nullptr) next_->previous_ = this;
  ForkHandlers::first = this;
}

void ProcessLock::unlist() {
  (previous_ != nullptr ? previous_->next_ : ForkHandlers::first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  previous_ = next_ = nullptr;
}

}  // namespace pagejit::cache
