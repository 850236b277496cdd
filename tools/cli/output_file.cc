#include "tools/cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/jit/environment.h"

namespace pagejit::cli {
namespace {

Status io_error(const std::string& path, const std::string& what, int error) {
  return Status(StatusCode::kCacheError, path + ": " + what + ": " + std::strerror(error));
}

}  // namespace

Status write_output(const std::string& path, const std::string& text, std::ostream& out) {
  if (path == "-") {
    out << text;
    return Status::ok();
  }
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) return io_error(path, "cannot be written", errno);
  return Status::ok();
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
