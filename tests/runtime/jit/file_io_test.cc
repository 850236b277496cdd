#include "runtime/jit/file_io.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(FileIoTest, PathsAreTakenApart) {
  EXPECT_EQ(folder_of("/a/b/c"), "/a/b");
  EXPECT_EQ(folder_of("/c"), "/");
  EXPECT_EQ(folder_of("c"), ".");
  EXPECT_EQ(name_of("/a/b/c"), "c");
  EXPECT_EQ(name_of("c"), "c");
}

TEST(FileIoTest, ReadFileRefusesWhatIsLarger) {
  TempFolder folder;
  const std::string path = folder.write("f", "12345");
  EXPECT_EQ(*read_file(path, 5), "12345");
  Result<std::string> refused = read_file(path, 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::kDataCorrupt);
}

TEST(FileIoTest, FifoDoesNotBlock) {
  TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(read_file(folder / "fifo", 10).status().message(), HasSubstr("not a regular file"));
}

TEST(FileIoTest, WriteNewFileOverwritesNothing) {
  TempFolder folder;
  EXPECT_TRUE(write_new_file(folder / "f", "x"));
  Status again = write_new_file(folder / "f", "y");
  EXPECT_EQ(again.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(again.message(), HasSubstr("File exists"));
  EXPECT_EQ(read_all(folder / "f"), "x");
}

TEST(FileIoTest, WriteThatStopsHalfWayIsNamed) {
  TempFolder folder;
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {10, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status = write_new_file(folder / "f", "more than ten bytes");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("File too large"));
}

TEST(FileIoTest, PrivateFolderIsPrivateAndVanishesWithItsContent) {
  TempFolder parent;
  std::string path;
  {
    Result<PrivateFolder> folder = PrivateFolder::create(parent.path());
    ASSERT_TRUE(folder);
    path = folder->path();
    EXPECT_THAT(path, StartsWith(parent.path() + "/pagejit-"));
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_TRUE(write_new_file(path + "/file", "x"));
    PrivateFolder moved = std::move(*folder);
    EXPECT_EQ(moved.path(), path);
    EXPECT_TRUE(is_folder(path));
  }
  EXPECT_FALSE(is_folder(path));
  EXPECT_THAT(parent.list(), IsEmpty());
}

TEST(FileIoTest, PrivateFolderFallsBackWhereTheParentIsUnusable) {
  for (const char* parent : {"", "relative", "/nonexistent/folder", "/proc"}) {
    Result<PrivateFolder> folder = PrivateFolder::create(parent);
    ASSERT_TRUE(folder) << parent;
    EXPECT_THAT(folder->path(), StartsWith("/tmp/pagejit-"));
  }
}

}  // namespace
}  // namespace pagejit::jit
