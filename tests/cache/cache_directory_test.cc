#include "cache/cache_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

DirectoryChoice resolve(const std::string& explicit_path,
                        const std::map<std::string, std::string>& environment) {
  return resolve_cache_directory(explicit_path,
                                 [&](const std::string& name) -> std::optional<std::string> {
                                   const auto found = environment.find(name);
                                   if (found == environment.end()) return std::nullopt;
                                   return found->second;
                                 });
}

TEST(ResolveCacheDirectoryTest, TheOrderIsExplicitThenXdgThenHome) {
  const std::map<std::string, std::string> both = {{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}};
  EXPECT_EQ(resolve("/e", both).path, "/e");
  EXPECT_EQ(resolve("", both).path, "/x/pagejit");
  EXPECT_EQ(resolve("", {{"HOME", "/h"}}).path, "/h/.cache/pagejit");
  EXPECT_EQ(resolve("", {{"HOME", "/h"}}).required_parent, "/h");
  EXPECT_EQ(resolve("", {}).path, "");
}

TEST(ResolveCacheDirectoryTest, TheCallerReadsPagejitCacheDir) {
  EXPECT_EQ(resolve("", {{"PAGEJIT_CACHE_DIR", "/p"}}).path, "");
}

TEST(ResolveCacheDirectoryTest, UnusableVariablesCountAsNotSet) {
  EXPECT_EQ(resolve("", {{"XDG_CACHE_HOME", ""}, {"HOME", "/h"}}).path, "/h/.cache/pagejit");
  EXPECT_EQ(resolve("", {{"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}).path, "/h/.cache/pagejit");
  for (const std::string& home : {std::string(), std::string("home"), std::string("~"),
                                  std::string("/h\0", 3), "/" + std::string(5000, 'h')}) {
    const DirectoryChoice choice = resolve("", {{"HOME", home}});
    EXPECT_EQ(choice.path, "");
    EXPECT_NE(choice.reason.find("$HOME"), std::string::npos) << choice.reason;
    EXPECT_NE(choice.reason.find("$XDG_CACHE_HOME is not set"), std::string::npos) << choice.reason;
  }
}

TEST(ResolveCacheDirectoryTest, AnImpossibleExplicitChoiceDoesNotLeadElsewhere) {
  for (const std::string& path :
       {std::string("~/cache"), std::string("/a\0b", 4), "/" + std::string(5000, 'a')}) {
    const DirectoryChoice choice = resolve(path, {{"HOME", "/h"}});
    EXPECT_EQ(choice.path, "");
    EXPECT_FALSE(choice.reason.empty());
  }
}

TEST(ResolveCacheDirectoryTest, RootAsHomeIsNotDoubled) {
  EXPECT_EQ(resolve("", {{"HOME", "/"}}).path, "/.cache/pagejit");
}

class CacheDirectoryTest : public testing::Test {
 protected:
  IoStatus open_root(const std::string& path, bool create, const std::string& home = "") {
    FileDescriptor root;
    return CacheDirectory(&fs_, {path, home, ""}).open_root(create, &root);
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  void expect_refused(const std::string& path, const std::string& reason) {
    for (bool create : {false, true}) {
      const IoStatus status = open_root(path, create);
      EXPECT_EQ(status.error(), EPERM) << status.message();
      EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
    }
  }

  TestDirectory directory_;
  FaultFileSystem fs_;
};

TEST_F(CacheDirectoryTest, IsMadeWithItsParentsForTheOwnerAlone) {
  const std::string path = directory_.path() / "a" / "b" / "c";
  EXPECT_EQ(open_root(path, false).error(), ENOENT);
  EXPECT_FALSE(fs::exists(directory_.path() / "a"));
  EXPECT_TRUE(open_root(path, true).is_ok());
  EXPECT_EQ(mode_of(path), 0700u);
  EXPECT_EQ(mode_of(directory_.path() / "a"), 0700u);
}

TEST_F(CacheDirectoryTest, AMissingHomeIsNotMade) {
  const std::string home = directory_.path() / "home";
  EXPECT_EQ(open_root(home + "/.cache/pagejit", true, home).error(), ENOENT);
  EXPECT_FALSE(fs::exists(home));
  fs::create_directory(home);
  EXPECT_TRUE(open_root(home + "/.cache/pagejit", true, home).is_ok());
}

TEST_F(CacheDirectoryTest, RootMakesNothingInAnotherUsersHome) {
  const std::string home = directory_.path() / "home";
  fs::create_directory(home);
  fs_.user = 0;
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(home.c_str(), 12345, 12345), 0);
  }
  const IoStatus status = open_root(home + "/.cache/pagejit", true, home);
  EXPECT_EQ(status.error(), EPERM);
  EXPECT_FALSE(fs::exists(home + "/.cache"));
}

TEST_F(CacheDirectoryTest, AFileAFifoOrASocketIsRefusedAndNamed) {
  const std::string file = directory_.path() / "file";
  write_file(file, "x");
  expect_refused(file, "is a regular file");
  EXPECT_EQ(read_file(file), "x");
  const std::string fifo = directory_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_refused(fifo, "is a FIFO");
}

TEST_F(CacheDirectoryTest, ASymbolicLinkIsRefusedAlsoWithATrailingSlash) {
  fs::create_directory(directory_.path() / "real");
  const std::string link = directory_.path() / "link";
  fs::create_directory_symlink(directory_.path() / "real", link);
  for (const char* end : {"", "/", "//", "/.", "/./"}) expect_refused(link + end, "symbolic link");
  fs::create_directory_symlink(directory_.path() / "nowhere", directory_.path() / "dangling");
  expect_refused(directory_.path() / "dangling", "symbolic link");
  // A link on the way there is the user's own arrangement.
  EXPECT_TRUE(open_root(link + "/cache", true).is_ok());
}

TEST_F(CacheDirectoryTest, WritableByGroupOrOthersIsRefused) {
  for (const mode_t mode : {0770, 0707, 0777, 01777}) {
    const std::string path = directory_.path() / std::to_string(mode);
    fs::create_directory(path);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    expect_refused(path, "chmod go-w");
  }
  const std::string readable = directory_.path() / "readable";
  fs::create_directory(readable);
  ASSERT_EQ(::chmod(readable.c_str(), 0755), 0);
  EXPECT_TRUE(open_root(readable, false).is_ok());
}

TEST_F(CacheDirectoryTest, AnotherUsersDirectoryIsRefused) {
  const std::string path = directory_.path() / "theirs";
  fs::create_directory(path);
  fs_.user = ::geteuid() + 1;  // seen from another user
  expect_refused(path, "belongs to user " + std::to_string(::geteuid()));
  fs_.user.reset();
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  expect_refused(path, "belongs to user 12345");
}

TEST_F(CacheDirectoryTest, EachFolderIsCheckedLikeTheRoot) {
  const CacheDirectory cache(&fs_, {directory_.cache(), "", ""});
  FileDescriptor version;
  FileDescriptor folder;
  ASSERT_TRUE(cache.open_version(true, &version).is_ok());
  ASSERT_TRUE(cache.open_folder(version, "objects", true, &folder).is_ok());
  ASSERT_EQ(::chmod((directory_.cache() + "/v1/objects").c_str(), 0777), 0);
  EXPECT_EQ(cache.open_folder(version, "objects", true, &folder).error(), EPERM);
  fs::create_directory_symlink(directory_.path(), directory_.cache() + "/v1/tmp");
  EXPECT_EQ(cache.open_folder(version, "tmp", true, &folder).error(), EPERM);
}

TEST_F(CacheDirectoryTest, ARelativePathIsTakenFromTheCurrentDirectoryOnce) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  const CacheDirectory cache(&fs_, {"relative", "", ""});
  fs::current_path(before);
  EXPECT_EQ(cache.path(), (fs::canonical(directory_.path()) / "relative").string());
}

TEST_F(CacheDirectoryTest, TheUmaskDoesNotMatter) {
  for (const mode_t mask : {0, 022, 077}) {
    const mode_t before = ::umask(mask);
    const std::string path = directory_.path() / std::to_string(mask) / "cache";
    EXPECT_TRUE(open_root(path, true).is_ok());
    ::umask(before);
    EXPECT_EQ(mode_of(path), 0700u);
  }
}

}  // namespace
}  // namespace pagejit::cache
