// Part of each test program under AddressSanitizer: a fork waits until no other thread runs.
// The sanitizer's own locks (of its allocator and its table of stacks) are not freed in a forked
// child, which would wait for ever for one that another thread held; GCC 12's has no fork handlers.
// A thread that never rests is waited for kMostMilliseconds only: it must not be one that
// allocates.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

constexpr int kMostMilliseconds = 200;

// Whether the thread waits for something: 'S' is the first word after the name in parentheses
// (proc(5)). One that has ended rests, too.
bool rests(int tasks, const char* id) {
  char path[64];
  (void)std::snprintf(path, sizeof path, "%s/stat", id);
  const int file = ::openat(tasks, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  char text[256];
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (size <= 0) return true;
  text[size] = '\0';
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && std::strncmp(name_end, ") S", 3) == 0;
}

// Allocates nothing but the DIR.
bool others_rest() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return true;
  const long self = ::syscall(SYS_gettid);
  bool all = true;
  while (const dirent* task = ::readdir(tasks)) {
    const long id = std::strtol(task->d_name, nullptr, 10);
    if (id > 0 && id != self && !rests(::dirfd(tasks), task->d_name)) all = false;
  }
  ::closedir(tasks);
  return all;
}

void wait_for_others() {
  for (int i = 0; i < kMostMilliseconds && !others_rest(); ++i) {
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    (void)::nanosleep(&millisecond, nullptr);
  }
}

// Registered last, so run first: none of the library's mutexes is held yet.
[[maybe_unused]] const int kRegistered = ::pthread_atfork(wait_for_others, nullptr, nullptr);

}  // namespace
