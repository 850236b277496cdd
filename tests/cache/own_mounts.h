// Mounts that only this process sees: for tests that need a full or a read-only file system. Call
// it in a forked child with one thread.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

namespace pagejit::cache {

// What this process mounts from now on, others do not see. Who is not root becomes root of a user
// namespace. False where the system allows neither.
inline bool get_own_mounts() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1" << std::flush;
    std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1" << std::flush;
    if (::geteuid() != 0) return false;
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace pagejit::cache
