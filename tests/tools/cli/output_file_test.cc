#include "tools/cli/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/cache/child_process.h"

namespace pagejit::cli {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    folder_ = fs::temp_directory_path() / "pagejit-output-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }
  Status write(const std::string& path, const std::string& text) {
    return write_output(path, text, out_);
  }
  static std::string read(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  std::string folder_;
  std::ostringstream out_;
};

TEST_F(OutputFileTest, AFileIsReplacedWholeAndKeepsItsMode) {
  const std::string path = folder_ + "/out.json";
  EXPECT_TRUE(write(path, "first, and longer\n"));
  EXPECT_EQ(fs::status(path).permissions() & fs::perms::owner_read, fs::perms::owner_read);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(write(path, "second\n"));
  EXPECT_EQ(read(path), "second\n");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(num_files(), 1u) << "no temporary is left";
}

// Where the limit on the file's size is met, which is in the midst of the write, a signal comes.
TEST_F(OutputFileTest, AnInterruptInTheMidstOfAWriteLeavesTheOldFile) {
  const std::string path = folder_ + "/out.json";
  EXPECT_TRUE(write(path, "old"));
  constexpr size_t kLimit = size_t{1} << 20;
  cache::ChildProcess child([&] {
    const rlimit limit = {kLimit, kLimit};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGXFSZ, [](int) { std::raise(SIGINT); });
    return write(path, std::string(2 * kLimit, 'n')) ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 128 + SIGINT);
  EXPECT_EQ(read(path), "old");
}

TEST_F(OutputFileTest, ALinkStaysALink) {
  EXPECT_TRUE(write(folder_ + "/target", "old"));
  fs::create_symlink("target", folder_ + "/link");
  EXPECT_TRUE(write(folder_ + "/link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link"));
  EXPECT_EQ(read(folder_ + "/target"), "new");
}

TEST_F(OutputFileTest, WhatCannotBeWrittenIsToldWithItsReason) {
  const Status missing = write(folder_ + "/no/such/folder", "x");
  EXPECT_EQ(missing.message(),
            folder_ + "/no/such/folder: cannot be written: No such file or directory");
  const Status full = write("/dev/full", "x");
  EXPECT_EQ(full.message(), "/dev/full: cannot be written: No space left on device");
  EXPECT_EQ(full.code(), StatusCode::kCacheError);
  const Status folder = write(folder_, "x");
  EXPECT_EQ(folder.message(), folder_ + ": cannot be written: Is a directory");
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(OutputFileTest, ADashIsTheStream) {
  EXPECT_TRUE(write("-", "text"));
  EXPECT_EQ(out_.str(), "text");
}

}  // namespace
}  // namespace pagejit::cli
