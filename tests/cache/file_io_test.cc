#include "cache/file_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

class FileIoTest : public testing::Test {
 protected:
  int open(const std::string& name, int flags, FileDescriptor* out) {
    return open_file(&fs_, AT_FDCWD, directory_.path() / name, flags, 0600, out);
  }

  TestDirectory directory_;
  FaultFileSystem fs_;
};

TEST_F(FileIoTest, ShortAndInterruptedTransfersAreWhole) {
  fs_.max_transfer_bytes = 7;
  fs_.interrupt_everything = true;
  const std::string bytes(10000, 'x');
  FileDescriptor file;
  ASSERT_EQ(open("f", O_WRONLY | O_CREAT, &file), 0);
  EXPECT_EQ(write_all(&fs_, file.get(), bytes), 0);
  EXPECT_EQ(sync_file(&fs_, file.get()), 0);
  EXPECT_EQ(file.close(), 0);
  for (size_t hint : {size_t{0}, size_t{1}, bytes.size(), bytes.size() * 2}) {
    ASSERT_EQ(open("f", O_RDONLY, &file), 0);
    std::string read_back;
    EXPECT_EQ(read_all(&fs_, file.get(), hint, 1 << 20, &read_back), 0);
    EXPECT_EQ(read_back, bytes);
  }
}

TEST_F(FileIoTest, ReadAllStopsAtItsLimit) {
  write_file(directory_.path() / "f", std::string(5000, 'x'));
  for (size_t hint : {size_t{0}, size_t{5000}, size_t{1} << 40}) {
    FileDescriptor file;
    std::string bytes;
    ASSERT_EQ(open("f", O_RDONLY, &file), 0);
    EXPECT_EQ(read_all(&fs_, file.get(), hint, 4999, &bytes), EFBIG);
    ASSERT_EQ(open("f", O_RDONLY, &file), 0);
    EXPECT_EQ(read_all(&fs_, file.get(), hint, 5000, &bytes), 0);
    EXPECT_EQ(bytes.size(), 5000u);
  }
}

TEST_F(FileIoTest, AWriteThatMakesNoProgressIsAnError) {
  fs_.max_transfer_bytes = 0;
  FileDescriptor file;
  ASSERT_EQ(open("f", O_WRONLY | O_CREAT, &file), 0);
  EXPECT_EQ(write_all(&fs_, file.get(), "x"), EIO);
}

TEST_F(FileIoTest, SymbolicLinksAreNotFollowed) {
  write_file(directory_.path() / "f", "x");
  fs::create_symlink(directory_.path() / "f", directory_.path() / "link");
  FileDescriptor file;
  EXPECT_EQ(open("link", O_RDONLY, &file), ELOOP);
  EXPECT_FALSE(file.is_open());
}

TEST_F(FileIoTest, ADescriptorIsClosedOnceWhateverCloseSays) {
  write_file(directory_.path() / "f", "x");
  const size_t before = num_open_files();
  {
    FileDescriptor file;
    ASSERT_EQ(open("f", O_RDONLY, &file), 0);
    fs_.fail_every(Call::kClose, EIO);
    EXPECT_EQ(file.close(), EIO);
    EXPECT_EQ(file.close(), 0);
    ASSERT_EQ(open("f", O_RDONLY, &file), 0);
    fs_.fail_every(Call::kClose, EINTR);
    EXPECT_EQ(file.close(), 0);
    FileDescriptor a;
    FileDescriptor b;
    ASSERT_EQ(open("f", O_RDONLY, &a), 0);
    ASSERT_EQ(open("f", O_RDONLY, &b), 0);
    a = std::move(b);  // closes what a had
  }
  EXPECT_EQ(num_open_files(), before);
}

TEST_F(FileIoTest, AStatusNamesTheCallAndTheError) {
  EXPECT_EQ(IoStatus::failure(ENOSPC, "write f").to_status().to_string(),
            "cache error: write f: No space left on device");
  EXPECT_EQ(IoStatus::refusal("f is a FIFO").error(), EPERM);
  EXPECT_TRUE(IoStatus().to_status().is_ok());
}

TEST_F(FileIoTest, ARangeEndsWhereTheFileDoes) {
  fs_.max_transfer_bytes = 7;
  fs_.interrupt_everything = true;
  write_file(directory_.path() / "f", "0123456789abcdefghij");
  FileDescriptor file;
  ASSERT_EQ(open("f", O_RDONLY, &file), 0);
  std::string bytes;
  EXPECT_EQ(read_range(&fs_, file.get(), 5, 12, &bytes), 0);
  EXPECT_EQ(bytes, "56789abcdefg");
  EXPECT_EQ(read_range(&fs_, file.get(), 15, 12, &bytes), 0);
  EXPECT_EQ(bytes, "fghij");
  EXPECT_EQ(read_range(&fs_, file.get(), 20, 1, &bytes), 0);
  EXPECT_EQ(bytes, "");
  fs_.fail_every(Call::kReadAt, EIO);
  EXPECT_EQ(read_range(&fs_, file.get(), 0, 1, &bytes), EIO);
}

TEST_F(FileIoTest, OnlyANamedFileIsFoundThroughASymbolicLink) {
  write_file(directory_.path() / "f", "x");
  fs::create_symlink("f", directory_.path() / "link");
  FileDescriptor file;
  EXPECT_EQ(open("link", O_RDONLY, &file), ELOOP);
  EXPECT_EQ(open_named_file(&fs_, directory_.path() / "link", O_RDONLY, 0, &file), 0);
}

}  // namespace
}  // namespace pagejit::cache
