// Small helpers over POSIX files: an owned descriptor, bounded reads, a private temporary folder.
// Not a general file library: only what the compilers of this folder need. Every descriptor is
// close-on-exec. Thread-safety: free functions without state; objects belong to one thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "pagejit/status.h"

namespace pagejit::jit {

// "No space left on device".
std::string errno_text(int error);

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  void reset();

 private:
  int fd_ = -1;
};

// Opens a regular file for reading and stores its size in bytes; never blocks on a FIFO or a
// device. kNotFound with the reason.
Result<UniqueFd> open_regular_file(const std::string& path, uint64_t& size_bytes);

// Reads exactly `count` bytes at `offset`; false on an error or an early end.
bool read_exactly(int fd, uint64_t offset, void* buffer, size_t count);

// The whole of a regular file of at most `max_bytes`. kNotFound, or kDataCorrupt where it is larger
// or shrinks.
Result<std::string> read_file(const std::string& path, size_t max_bytes);

// Creates `path` (mode 0600, which must not exist) with `content`. kCompilerUnavailable with the
// errno's text.
Status write_new_file(const std::string& path, std::string_view content);

bool is_file(const std::string& path);
bool is_folder(const std::string& path);
// The path with every symbolic link resolved; the path itself where that fails.
std::string resolved_path(const std::string& path);
// "/a/b" of "/a/b/c"; "." where there is no slash; "/" of "/c".
std::string folder_of(const std::string& path);
// "c" of "/a/b/c".
std::string name_of(const std::string& path);

// A folder of mode 0700 with a random name, removed with all that is in it on destruction.
class PrivateFolder {
 public:
  // Below `parent` if that is an absolute path to a usable folder, else below /tmp, else below
  // /var/tmp. kCompilerUnavailable with the errno's text.
  static Result<PrivateFolder> create(const std::string& parent);
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace pagejit::jit
