#include "runtime/jit/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/jit/file_io.h"

namespace pagejit::jit {
namespace {

using Clock = std::chrono::steady_clock;

// A compile that fails a thousand times in a row writes about 100 KB; what comes after this adds
// nothing.
constexpr size_t kMaxOutputBytes = 1 << 20;
// How long a program that has closed its output, or has left it open to a daemon, goes unnoticed;
// and a cancellation.
constexpr int kPollMs = 20;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

// File actions and attributes of one spawn.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  int prepare(const std::string& folder, int output) {
    // 0 = a process group of its own, so that the compiler's children can be killed with it.
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (error == 0) {
      error = posix_spawn_file_actions_addchdir_np(&actions, folder.empty() ? "/" : folder.c_str());
    }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // The host program's descriptors are not all close-on-exec.
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
    return error;
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Reads what is there; false at the end of the output.
bool drain(int fd, std::string& output) {
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const size_t room = kMaxOutputBytes - output.size();
    output.append(buffer, std::min(static_cast<size_t>(got), room));
  }
}

// Whether the child has ended; fills in how.
bool reap(pid_t pid, bool block, SubprocessResult& result) {
  int status = 0;
  pid_t got = 0;
  do {
    got = waitpid(pid, &status, block ? 0 : WNOHANG);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return false;
  if (got < 0) {
    result.end = SubprocessResult::End::kUnknown;
  } else if (WIFSIGNALED(status)) {
    result.end = SubprocessResult::End::kSignalled;
    result.signal = WTERMSIG(status);
  } else {
    result.end = SubprocessResult::End::kExited;
    result.exit_code = WEXITSTATUS(status);
  }
  return true;
}

SubprocessResult await(pid_t pid, int output, const SubprocessRequest& request) {
  SubprocessResult result;
  const Clock::time_point deadline = Clock::now() + request.timeout;
  bool is_open = true;
  for (;;) {
    // The output's end is the prompt sign; asking for the child itself serves where a daemon keeps
    // the output open.
    pollfd waiting{output, POLLIN, 0};
    poll(&waiting, is_open ? 1 : 0, is_open ? kPollMs : 1);
    if (is_open) is_open = drain(output, result.output);
    if (reap(pid, /*block=*/false, result)) {
      if (is_open) drain(output, result.output);
      return result;
    }
    const bool is_cancelled = request.stop.stop_requested();
    if (is_cancelled || Clock::now() >= deadline) {
      kill(-pid, SIGKILL);
      reap(pid, /*block=*/true, result);
      drain(output, result.output);
      result.end =
          is_cancelled ? SubprocessResult::End::kCancelled : SubprocessResult::End::kTimedOut;
      return result;
    }
  }
}

}  // namespace

Result<SubprocessResult> run_subprocess(const SubprocessRequest& request) {
  const auto failed = [&request](int error) {
    return Status(StatusCode::kCompilerUnavailable,
                  "cannot run " + request.command.front() + ": " + errno_text(error));
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // Only our end: the child's must block.
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);

  SpawnSetup setup;
  if (const int error = setup.prepare(request.folder, write_end.get()); error != 0) {
    return failed(error);
  }
  const std::vector<char*> arguments = pointers(request.command);
  const std::vector<char*> environment = pointers(request.environment);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, request.command.front().c_str(), &setup.actions,
                                &setup.attributes, arguments.data(), environment.data());
  if (error != 0) return failed(error);
  write_end.reset();
  return await(pid, read_end.get(), request);
}

}  // namespace pagejit::jit
