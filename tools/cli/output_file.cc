#include "tools/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "runtime/jit/environment.h"

namespace pagejit::cli {
namespace {

Status io_error(const std::string& path, const std::string& what, int error) {
  return Status(StatusCode::kCacheError, path + ": " + what + ": " + std::strerror(error));
}

constexpr mode_t kModeBits = 07777;
constexpr mode_t kNewFileMode = 0666;  // as open() of any program, before the umask

// errno, 0 where it worked.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int write_in_place(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write_all(fd, text);
  if (close(fd) != 0 && error == 0) return errno;
  return error;
}

// mode 0: of a new file.
int write_aside(const std::string& path, std::string_view text, mode_t mode) {
  // A link stays one: what it names is replaced. Of a file that is not there its folder is.
  std::error_code failure;
  const std::string target = std::filesystem::weakly_canonical(path, failure).string();
  if (failure) return failure.value();
  if (mode == 0) {
    const mode_t mask = umask(0);
    umask(mask);
    mode = kNewFileMode & ~mask;
  } else if (access(target.c_str(), W_OK) != 0) {
    return errno;  // the folder may be writable, but this file is to stay
  }
  std::string temporary = target + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return errno;
  int error = write_all(fd, text);
  if (error == 0 && fchmod(fd, mode) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace

Status write_output(const std::string& path, const std::string& text, std::ostream& out) {
  if (path == "-") {
    out << text;
    return Status::ok();
  }
  struct stat existing = {};
  const bool exists = stat(path.c_str(), &existing) == 0;
  const int error = exists && !S_ISREG(existing.st_mode)
                        ? write_in_place(path, text)
                        : write_aside(path, text, exists ? existing.st_mode & kModeBits : 0);
  return error == 0 ? Status::ok() : io_error(path, "cannot be written", error);
}

Result<cache::DirectoryChoice> find_cache_directory(const EngineOptions& options) {
  cache::DirectoryChoice choice =
      cache::resolve_cache_directory(options.cache_dir, process_environment());
  if (choice.path.empty()) {
    return Status(StatusCode::kCacheError,
                  "there is no cache directory to store kernels in: " + choice.reason);
  }
  return choice;
}

Status check_cache_directory(const EngineOptions& options) {
  const Result<cache::DirectoryChoice> found = find_cache_directory(options);
  if (!found) return found.status();
  const cache::DirectoryChoice& choice = *found;
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(choice.path, error);
  if (error) return io_error(choice.path, "the cache directory cannot be made", error.value());
  // access() tells root that everything is writable, read-only mounts aside; a file tells the
  // truth.
  std::string probe = choice.path + "/probe-XXXXXX";
  const int fd = mkstemp(probe.data());
  if (fd < 0) return io_error(choice.path, "the cache directory cannot be written", errno);
  close(fd);
  unlink(probe.c_str());
  return Status::ok();
}

}  // namespace pagejit::cli
