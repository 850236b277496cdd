// What the cache's tests share: a directory that goes away, example entries, files as strings, and
// children. Thread-safety: one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/entry.h"
#include "cache/key.h"

namespace pagejit::cache {

namespace fs = std::filesystem;

class TestDirectory {
 public:
  TestDirectory() {
    // In memory where there is such a place: thousands of fsyncs on a busy disk take minutes.
    // TEST_TMPDIR chooses another, e.g. one on NFS.
    const bool in_memory = std::getenv("TEST_TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
    std::string name = (in_memory ? "/dev/shm" : testing::TempDir()) + "/pagejit_cache_test_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TestDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const fs::path& path() const { return path_; }
  // A place below it that does not exist yet.
  std::string cache() const { return path_ / "cache"; }

 private:
  fs::path path_;
};

inline Entry example_entry(int number, size_t image_bytes = 100) {
  KeyIngredients ingredients;
  ingredients.text = "kernel " + std::to_string(number);
  ingredients.target = "sm_90a";
  ingredients.compiler_identity = "compiler";
  Entry entry{make_key(ingredients), "metadata of " + std::to_string(number), {}};
  for (size_t i = 0; i < image_bytes; ++i) {
    entry.image += static_cast<char>(i * 31 + static_cast<size_t>(number) * 7);
  }
  return entry;
}

inline std::unique_ptr<DiskCache> open_cache(const std::string& path,
                                             std::shared_ptr<FileSystem> file_system = nullptr) {
  DiskCacheOptions options;
  options.directory = {path, "", "test"};
  options.file_system = std::move(file_system);
  return DiskCache::open(std::move(options));
}

inline fs::path entry_path(const fs::path& cache, const Key& key) {
  return cache / "v1" / "objects" / to_hex(key.source).substr(0, 2) / key.file_name();
}

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const fs::path& path, const std::string& bytes, mode_t mode = 0600) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  fs::permissions(path, static_cast<fs::perms>(mode));
}

inline std::vector<std::string> list(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(directory, ignored)) {
    names.push_back(item.path().filename());
  }
  return names;
}

inline size_t num_open_files() { return list("/proc/self/fd").size(); }

// Runs `body` in a child process; returns its exit code, or 128 + the signal that ended it.
template <class Body>
int run_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace pagejit::cache
