#include "cache/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    fs::create_directory(tmp_);
    fs::create_directory(final_);
    EXPECT_EQ(open_file(&fs_, AT_FDCWD, tmp_, O_RDONLY | O_DIRECTORY, 0, &tmp_fd_), 0);
    EXPECT_EQ(open_file(&fs_, AT_FDCWD, final_, O_RDONLY | O_DIRECTORY, 0, &final_fd_), 0);
  }

  IoStatus publish(const std::string& bytes) {
    AtomicFile file(&fs_, tmp_fd_.get());
    IoStatus status = file.create();
    if (status.is_ok()) status = file.write(bytes);
    if (status.is_ok()) status = file.commit(final_fd_.get(), "name");
    return status;
  }

  TestDirectory directory_;
  const std::string tmp_ = directory_.path() / "tmp";
  const std::string final_ = directory_.path() / "final";
  FaultFileSystem fs_;
  FileDescriptor tmp_fd_;
  FileDescriptor final_fd_;
};

TEST_F(AtomicFileTest, CommitShowsTheWholeFileAndLeavesNoTemporary) {
  ASSERT_TRUE(publish("bytes").is_ok());
  EXPECT_EQ(read_file(final_ + "/name"), "bytes");
  EXPECT_TRUE(list(tmp_).empty());
  struct stat info;
  ASSERT_EQ(::stat((final_ + "/name").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(AtomicFileTest, WithoutCommitNothingIsLeft) {
  {
    AtomicFile file(&fs_, tmp_fd_.get());
    ASSERT_TRUE(file.create().is_ok());
    ASSERT_TRUE(file.write("bytes").is_ok());
    EXPECT_EQ(list(tmp_).size(), 1u);
  }
  EXPECT_TRUE(list(tmp_).empty());
  EXPECT_TRUE(list(final_).empty());
}

TEST_F(AtomicFileTest, CommitReplacesAnOlderFile) {
  write_file(final_ + "/name", "a much older and longer file");
  ASSERT_TRUE(publish("new").is_ok());
  EXPECT_EQ(read_file(final_ + "/name"), "new");
}

TEST_F(AtomicFileTest, AnEmptyFileCanBePublished) {
  ASSERT_TRUE(publish("").is_ok());
  EXPECT_TRUE(fs::exists(final_ + "/name"));
}

TEST_F(AtomicFileTest, AGuessedTemporaryIsNeverOpened) {
  fs_.constant_random = 0xab;
  const std::string guess = tmp_ + "/" + to_hex(std::string(16, '\xab')) + ".tmp";
  write_file(directory_.path() / "victim", "precious");
  fs::create_symlink(directory_.path() / "victim", guess);
  EXPECT_EQ(publish("bytes").error(), EEXIST);
  EXPECT_EQ(read_file(directory_.path() / "victim"), "precious");
  EXPECT_TRUE(fs::is_symlink(guess)) << "what others made is not ours to remove";
}

TEST_F(AtomicFileTest, EveryFailingCallIsReportedAndLeavesNothing) {
  for (Call call :
       {Call::kRandom, Call::kOpen, Call::kWrite, Call::kFsync, Call::kClose, Call::kRename}) {
    for (int error : {ENOSPC, EDQUOT, EIO, EMFILE, EROFS, ESTALE}) {
      SCOPED_TRACE(static_cast<int>(call));
      const size_t before = num_open_files();
      fs_.fail_every(call, error);
      const IoStatus status = publish("bytes");
      fs_.fail_nothing();
      EXPECT_EQ(status.error(), error);
      EXPECT_FALSE(status.message().empty());
      EXPECT_TRUE(list(tmp_).empty());
      EXPECT_TRUE(list(final_).empty());
      EXPECT_EQ(num_open_files(), before);
    }
  }
}

}  // namespace
}  // namespace pagejit::cache
