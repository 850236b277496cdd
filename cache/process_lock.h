// ProcessLock: of all processes that want one key, one holds its lock. The lock is an OFD lock
// (fcntl(2)) on one byte of the file "lock" in v1, at an offset taken from the key, so two keys
// hardly ever share it; the kernel releases it when its holder dies. Nothing is correct because of
// it: where there is none, keys are compiled more than once. Thread-safety: an object belongs to
// one thread at a time; different objects are independent, and exclude each other within one
// process too.
//
// A forked child shares the open file and with it the lock, which would outlive a parent that is
// killed. So the child closes all of them as its first act (pthread_atfork). A child made past
// those handlers (vfork, posix_spawn, clone) has them until its exec, or until it ends.
#pragma once

#include <sys/types.h>

#include "cache/file_io.h"
#include "cache/file_system.h"
#include "cache/key.h"

namespace pagejit::cache {

class ProcessLock {
 public:
  ProcessLock() = default;
  ~ProcessLock() { release(); }
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

  // Opens the lock file in dir_fd, an open v1, and makes it where there is none; dir_fd may be
  // closed then. Releases what was held. file_system must outlive this object; its close() may be
  // called in a forked child.
  IoStatus open(FileSystem* file_system, int dir_fd);
  // Takes the key's lock without waiting; only after open(). 0 or a positive errno: EAGAIN where
  // another object or process holds it; after any other there is nothing to wait for.
  int try_take(const Key& key);
  // The same for the one lock of those who remove entries; no key shares its byte.
  int try_take_for_removal();
  // False also in a child that was forked while the lock was held.
  bool is_taken() const { return is_taken_; }
  // Gives the lock back, if it is held, and closes the file.
  void release();

 private:
  struct ForkHandlers;  // of the process; sees every object whose file is open

  int try_take_byte(off_t offset);
  // Into and out of the list of these; its mutex is held.
  void enlist();
  void unlist();

  FileSystem* file_system_ = nullptr;
  FileDescriptor file_;
  off_t offset_ = 0;  // meaningful where is_taken_
  bool is_taken_ = false;
  ProcessLock* previous_ = nullptr;  // in the list
  ProcessLock* next_ = nullptr;
};

}  // namespace pagejit::cache
