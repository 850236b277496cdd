#include "runtime/jit/file_io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>

namespace pagejit::jit {

std::string errno_text(int error) { return std::generic_category().message(error); }

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<UniqueFd> open_regular_file(const std::string& path, uint64_t& size_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return Status(StatusCode::kNotFound, path + ": " + errno_text(errno));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return Status(StatusCode::kNotFound, path + ": " + errno_text(errno));
  }
  if (!S_ISREG(info.st_mode)) return Status(StatusCode::kNotFound, path + ": not a regular file");
  size_bytes = static_cast<uint64_t>(info.st_size);
  return fd;
}

bool read_exactly(int fd, uint64_t offset, void* buffer, size_t count) {
  if (offset > static_cast<uint64_t>(INT64_MAX) - count) return false;
  char* out = static_cast<char*>(buffer);
  while (count > 0) {
    const ssize_t got = pread(fd, out, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
  return true;
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  uint64_t size = 0;
  Result<UniqueFd> fd = open_regular_file(path, size);
  if (!fd) return fd.status();
  if (size > max_bytes) {
    return Status(StatusCode::kDataCorrupt, path + ": " + std::to_string(size) +
                                                " bytes, more than the expected " +
                                                std::to_string(max_bytes));
  }
  std::string content(size, '\0');
  if (!read_exactly(fd->get(), 0, content.data(), content.size())) {
    return Status(StatusCode::kDataCorrupt, path + ": cannot be read to its end");
  }
  return content;
}

Status write_new_file(const std::string& path, std::string_view content) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) {
    return Status(StatusCode::kCompilerUnavailable,
                  "cannot create " + path + ": " + errno_text(errno));
  }
  while (!content.empty()) {
    const ssize_t put = write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      return Status(StatusCode::kCompilerUnavailable,
                    "cannot write " + path + ": " + errno_text(errno));
    }
    content.remove_prefix(static_cast<size_t>(put));
  }
  return Status::ok();
}

bool is_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string resolved_path(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result(resolved);
  free(resolved);
  return result;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<PrivateFolder> PrivateFolder::create(const std::string& parent) {
  std::string reasons;
  for (const std::string& base : {parent, std::string("/tmp"), std::string("/var/tmp")}) {
    if (base.empty() || base.front() != '/') continue;
    std::string path = base + "/pagejit-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) return PrivateFolder(std::move(path));
    reasons += (reasons.empty() ? "" : ", ") + base + ": " + errno_text(errno);
  }
  return Status(StatusCode::kCompilerUnavailable,
                "cannot create a temporary folder for the compiler (" + reasons +
                    "): set TMPDIR to a folder with free space");
}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) return;
  std::error_code ignored;  // nothing can be done about it, and the folder is private
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace pagejit::jit
