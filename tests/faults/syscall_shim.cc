#include "tests/faults/syscall_shim.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#define PAGEJIT_SHIM_EXPORT __attribute__((visibility("default")))

namespace pagejit_faults {
namespace {

Plan plan;
std::atomic<uint64_t> num_calls{0};
std::atomic<uint64_t> num_hits{0};

// Longer paths than this are none of the tests'.
constexpr size_t kMaxPath = 1024;

bool is_below_folder(const char* path) {
  const size_t size = std::strlen(plan.folder);
  return std::strncmp(path, plan.folder, size) == 0 && (path[size] == 0 || path[size] == '/');
}

// What the kernel says an open descriptor leads to.
bool path_of(int fd, char* path) {
  char link[32];
  std::snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
  const long size = ::syscall(SYS_readlinkat, AT_FDCWD, link, path, kMaxPath - 1);
  if (size < 0) return false;
  path[size] = 0;
  return true;
}

bool is_meant(int fd) {
  if (plan.folder[0] == 0) return false;
  const int error = errno;
  char path[kMaxPath];
  const bool result = path_of(fd, path) && is_below_folder(path);
  errno = error;
  return result;
}

bool is_meant(int dir_fd, const char* name) {
  if (plan.folder[0] == 0 || name == nullptr) return false;
  if (name[0] == '/') return is_below_folder(name);
  const int error = errno;
  char path[kMaxPath];
  bool result = path_of(dir_fd, path);
  errno = error;
  if (!result) return false;
  const size_t size = std::strlen(path);
  std::snprintf(path + size, sizeof path - size, "/%s", name);
  return is_below_folder(path);
}

// splitmix64 of the seed and the call's number: no state that threads would share.
uint64_t random_of(uint64_t number) {
  uint64_t z = plan.seed + number * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

// Makes the call, which returns as its system call with errno, or what the plan wants instead.
template <class Real>
long call_or_fault(Call call, bool meant, Real&& real) {
  if (!meant || (plan.call != Call::kAny && plan.call != call)) return real();
  const uint64_t number = ++num_calls;
  const uint64_t random = random_of(number);
  const bool hit = plan.action != Action::kNone && number >= plan.first && number <= plan.last &&
                   (plan.one_in == 0 || random % plan.one_in == 0);
  if (!hit) return real();
  ++num_hits;
  if (plan.action == Action::kKillBefore) die();
  if (plan.action == Action::kKillAfter) {
    real();
    die();
  }
  if (call == Call::kClose) real();
  static constexpr int kErrors[] = {ENOSPC, EDQUOT, EIO, EMFILE, EROFS, ESTALE};
  errno = plan.error != 0 ? plan.error : kErrors[(random >> 32) % std::size(kErrors)];
  return -1;
}

template <class Enum, size_t size>
Enum find(const char* const (&names)[size], const char* word, size_t length) {
  for (size_t i = 0; i < size; ++i) {
    if (std::strlen(names[i]) == length && std::strncmp(names[i], word, length) == 0) {
      return static_cast<Enum>(i);
    }
  }
  std::fprintf(stderr, "PAGEJIT_FAULTS: unknown word '%.*s'\n", static_cast<int>(length), word);
  std::abort();
}

[[gnu::constructor]] void read_plan() {
  const char* text = std::getenv("PAGEJIT_FAULTS");
  if (text == nullptr) return;
  Plan read;
  while (*text != 0) {
    const size_t length = std::strcspn(text, " ");
    const char* value = std::strchr(text, '=');
    if (value == nullptr || value >= text + length) {
      std::fprintf(stderr, "PAGEJIT_FAULTS: '%s' is no name=value\n", text);
      std::abort();
    }
    const std::size_t name_size = static_cast<size_t>(value++ - text);
    const auto is = [&](const char* name) {
      return std::strlen(name) == name_size && std::strncmp(name, text, name_size) == 0;
    };
    const size_t value_size = static_cast<size_t>(text + length - value);
    if (is("folder")) {
      std::snprintf(read.folder, sizeof read.folder, "%s", value);
      break;
    }
    if (is("call")) read.call = find<Call>(kCallNames, value, value_size);
    if (is("action")) read.action = find<Action>(kActionNames, value, value_size);
    if (is("error")) read.error = std::atoi(value);
    if (is("first")) read.first = std::strtoull(value, nullptr, 10);
    if (is("last")) read.last = std::strtoull(value, nullptr, 10);
    if (is("one_in")) read.one_in = std::strtoull(value, nullptr, 10);
    if (is("seed")) read.seed = std::strtoull(value, nullptr, 10);
    text += length;
    if (*text == ' ') ++text;
  }
  plan = read;
}

int open_or_fault(int dir_fd, const char* path, int flags, mode_t mode) {
  return static_cast<int>(call_or_fault(Call::kOpen, is_meant(dir_fd, path), [&] {
    return ::syscall(SYS_openat, dir_fd, path, flags, mode);
  }));
}

int stat_or_fault(int dir_fd, const char* path, struct stat* out, int flags) {
  return static_cast<int>(call_or_fault(Call::kStat, is_meant(dir_fd, path), [&] {
    return ::syscall(SYS_newfstatat, dir_fd, path, out, flags);
  }));
}

int stat_or_fault(int fd, struct stat* out) {
  return static_cast<int>(
      call_or_fault(Call::kStat, is_meant(fd), [&] { return ::syscall(SYS_fstat, fd, out); }));
}

int rename_or_fault(int from_fd, const char* from, int to_fd, const char* to) {
  return static_cast<int>(
      call_or_fault(Call::kRename, is_meant(from_fd, from) || is_meant(to_fd, to),
                    [&] { return ::syscall(SYS_renameat2, from_fd, from, to_fd, to, 0); }));
}

int unlink_or_fault(int dir_fd, const char* path, int flags) {
  return static_cast<int>(call_or_fault(Call::kUnlink, is_meant(dir_fd, path), [&] {
    return ::syscall(SYS_unlinkat, dir_fd, path, flags);
  }));
}

int make_directory_or_fault(int dir_fd, const char* path, mode_t mode) {
  return static_cast<int>(call_or_fault(Call::kMakeDirectory, is_meant(dir_fd, path), [&] {
    return ::syscall(SYS_mkdirat, dir_fd, path, mode);
  }));
}

int control_or_fault(int fd, int command, void* argument) {
  return static_cast<int>(call_or_fault(
      Call::kControl, is_meant(fd), [&] { return ::syscall(SYS_fcntl, fd, command, argument); }));
}

// The mode of an open, which is there only where a file may be made.
#define PAGEJIT_SHIM_MODE(flags)                        \
  mode_t mode = 0;                                      \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {         \
    va_list arguments;                                  \
    va_start(arguments, flags);                         \
    mode = static_cast<mode_t>(va_arg(arguments, int)); \
    va_end(arguments);                                  \
  }

}  // namespace
}  // namespace pagejit_faults

using pagejit_faults::Call;

extern "C" {

PAGEJIT_SHIM_EXPORT void pagejit_faults_set(const pagejit_faults::Plan* plan) {
  pagejit_faults::plan = plan != nullptr ? *plan : pagejit_faults::Plan();
  pagejit_faults::num_calls = 0;
  pagejit_faults::num_hits = 0;
}

PAGEJIT_SHIM_EXPORT uint64_t pagejit_faults_count() { return pagejit_faults::num_calls; }
PAGEJIT_SHIM_EXPORT uint64_t pagejit_faults_hits() { return pagejit_faults::num_hits; }

PAGEJIT_SHIM_EXPORT int open(const char* path, int flags, ...) {
  PAGEJIT_SHIM_MODE(flags)
  return pagejit_faults::open_or_fault(AT_FDCWD, path, flags, mode);
}
PAGEJIT_SHIM_EXPORT int open64(const char* path, int flags, ...) {
  PAGEJIT_SHIM_MODE(flags)
  return pagejit_faults::open_or_fault(AT_FDCWD, path, flags, mode);
}
PAGEJIT_SHIM_EXPORT int openat(int dir_fd, const char* path, int flags, ...) {
  PAGEJIT_SHIM_MODE(flags)
  return pagejit_faults::open_or_fault(dir_fd, path, flags, mode);
}
PAGEJIT_SHIM_EXPORT int openat64(int dir_fd, const char* path, int flags, ...) {
  PAGEJIT_SHIM_MODE(flags)
  return pagejit_faults::open_or_fault(dir_fd, path, flags, mode);
}

PAGEJIT_SHIM_EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  return pagejit_faults::call_or_fault(Call::kRead, pagejit_faults::is_meant(fd),
                                       [&] { return ::syscall(SYS_read, fd, buffer, size); });
}
PAGEJIT_SHIM_EXPORT ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  return pagejit_faults::call_or_fault(Call::kRead, pagejit_faults::is_meant(fd), [&] {
    return ::syscall(SYS_pread64, fd, buffer, size, offset);
  });
}
PAGEJIT_SHIM_EXPORT ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  return pread(fd, buffer, size, offset);
}
PAGEJIT_SHIM_EXPORT ssize_t write(int fd, const void* data, size_t size) {
  return pagejit_faults::call_or_fault(Call::kWrite, pagejit_faults::is_meant(fd),
                                       [&] { return ::syscall(SYS_write, fd, data, size); });
}
PAGEJIT_SHIM_EXPORT int fsync(int fd) {
  return static_cast<int>(pagejit_faults::call_or_fault(Call::kSync, pagejit_faults::is_meant(fd),
                                                        [&] { return ::syscall(SYS_fsync, fd); }));
}
PAGEJIT_SHIM_EXPORT int fdatasync(int fd) {
  return static_cast<int>(pagejit_faults::call_or_fault(
      Call::kSync, pagejit_faults::is_meant(fd), [&] { return ::syscall(SYS_fdatasync, fd); }));
}
PAGEJIT_SHIM_EXPORT int close(int fd) {
  return static_cast<int>(pagejit_faults::call_or_fault(Call::kClose, pagejit_faults::is_meant(fd),
                                                        [&] { return ::syscall(SYS_close, fd); }));
}

PAGEJIT_SHIM_EXPORT int rename(const char* from, const char* to) noexcept {
  return pagejit_faults::rename_or_fault(AT_FDCWD, from, AT_FDCWD, to);
}
PAGEJIT_SHIM_EXPORT int renameat(int from_fd, const char* from, int to_fd,
                                 const char* to) noexcept {
  return pagejit_faults::rename_or_fault(from_fd, from, to_fd, to);
}
PAGEJIT_SHIM_EXPORT int unlink(const char* path) noexcept {
  return pagejit_faults::unlink_or_fault(AT_FDCWD, path, 0);
}
PAGEJIT_SHIM_EXPORT int unlinkat(int dir_fd, const char* path, int flags) noexcept {
  return pagejit_faults::unlink_or_fault(dir_fd, path, flags);
}
PAGEJIT_SHIM_EXPORT int mkdir(const char* path, mode_t mode) noexcept {
  return pagejit_faults::make_directory_or_fault(AT_FDCWD, path, mode);
}
PAGEJIT_SHIM_EXPORT int mkdirat(int dir_fd, const char* path, mode_t mode) noexcept {
  return pagejit_faults::make_directory_or_fault(dir_fd, path, mode);
}

PAGEJIT_SHIM_EXPORT int fstat(int fd, struct stat* out) noexcept {
  return pagejit_faults::stat_or_fault(fd, out);
}
PAGEJIT_SHIM_EXPORT int fstat64(int fd, struct stat64* out) noexcept {
  return pagejit_faults::stat_or_fault(fd, reinterpret_cast<struct stat*>(out));
}
PAGEJIT_SHIM_EXPORT int fstatat(int dir_fd, const char* path, struct stat* out,
                                int flags) noexcept {
  return pagejit_faults::stat_or_fault(dir_fd, path, out, flags);
}
PAGEJIT_SHIM_EXPORT int fstatat64(int dir_fd, const char* path, struct stat64* out,
                                  int flags) noexcept {
  return pagejit_faults::stat_or_fault(dir_fd, path, reinterpret_cast<struct stat*>(out), flags);
}
PAGEJIT_SHIM_EXPORT int futimens(int fd, const struct timespec* times) noexcept {
  return static_cast<int>(pagejit_faults::call_or_fault(
      Call::kTouch, pagejit_faults::is_meant(fd),
      [&] { return ::syscall(SYS_utimensat, fd, nullptr, times, 0); }));
}
PAGEJIT_SHIM_EXPORT int utimensat(int dir_fd, const char* path, const struct timespec* times,
                                  int flags) noexcept {
  return static_cast<int>(pagejit_faults::call_or_fault(
      Call::kTouch, pagejit_faults::is_meant(dir_fd, path),
      [&] { return ::syscall(SYS_utimensat, dir_fd, path, times, flags); }));
}

PAGEJIT_SHIM_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return pagejit_faults::control_or_fault(fd, command, argument);
}
PAGEJIT_SHIM_EXPORT int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return pagejit_faults::control_or_fault(fd, command, argument);
}

}  // extern "C"
