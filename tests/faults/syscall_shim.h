// SyscallShim: glibc's wrappers of the file system calls once more, in a shared object that a
// program is linked with or that is preloaded (LD_PRELOAD). Calls that touch a given folder are
// counted, and some of them fail or end the process, as a plan says. Not a sandbox: calls from
// inside glibc itself (readdir, fopen) pass by. For tests only. Thread-safety: calls may come from
// any thread; a plan is set while no other thread makes one.
//
// A preloaded shim takes its plan from the variable PAGEJIT_FAULTS, words in any order, the folder
// last: "call=write action=fail error=28 first=3 last=3 one_in=0 seed=1 folder=/path".
#pragma once

#include <cstdint>

namespace pagejit_faults {

enum class Call : uint8_t {
  kAny = 0,
  kOpen,
  kRead,
  kWrite,
  kSync,
  kClose,
  kRename,
  kUnlink,
  kMakeDirectory,
  kStat,
  kControl,  // fcntl
  kTouch,    // futimens, utimensat
};
inline constexpr const char* kCallNames[] = {"any",   "open",  "read",    "write",
                                             "sync",  "close", "rename",  "unlink",
                                             "mkdir", "stat",  "control", "touch"};

enum class Action : uint8_t {
  kNone = 0,
  kFail,  // a failing close still closes, like Linux; of the others nothing happens
  kKillBefore,
  kKillAfter,
};
inline constexpr const char* kActionNames[] = {"none", "fail", "kill_before", "kill_after"};

struct Plan {
  Call call = Call::kAny;
  Action action = Action::kNone;
  int error = 0;       // of kFail; 0 = ENOSPC, EDQUOT, EIO, EMFILE, EROFS or ESTALE at random
  uint64_t first = 1;  // the calls meant, counted from 1 when the plan is set
  uint64_t last = UINT64_MAX;
  uint64_t one_in = 0;  // > 0: of these one in so many, at random
  uint64_t seed = 1;
  char folder[256] = "";  // absolute, no trailing slash; "": no call is meant or counted
};

}  // namespace pagejit_faults

extern "C" {
// Null = no faults and no counting. The plan is copied.
void pagejit_faults_set(const pagejit_faults::Plan* plan);
// How many calls of the plan's kind touched its folder since it was set.
uint64_t pagejit_faults_count();
// How many of them the plan has hit.
uint64_t pagejit_faults_hits();
}
