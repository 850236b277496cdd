// What doctor says of a cache directory: a good one, each kind of bad one, and what is tried there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cache/fault_file_system.h"
#include "tools/cli/doctor_checks.h"

namespace pagejit::cli {
namespace {

using cache::Call;
using cache::FaultFileSystem;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class DoctorCacheTest : public ::testing::Test {
 protected:
  DoctorCacheTest() {
    std::string path = (fs::temp_directory_path() / "pagejit-doctor-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) std::abort();
    folder_ = path;
    options_.cache_dir = folder_ + "/cache";
  }
  ~DoctorCacheTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  // The finding of that topic; without one it has no text.
  Finding examine(const std::string& topic, cache::FileSystem* files = nullptr) {
    DoctorReport report;
    examine_cache(options_, report, files);
    for (const Finding& finding : report.findings()) {
      if (finding.topic == topic) return finding;
    }
    return {};
  }

  std::string folder_;
  EngineOptions options_;
};

TEST_F(DoctorCacheTest, GoodDirectoryIsMadeAndTriedOut) {
  const Finding directory = examine("cache directory");
  EXPECT_EQ(directory.level, FindingLevel::kOk);
  EXPECT_EQ(directory.values["path"], options_.cache_dir);
  EXPECT_EQ(directory.values["mode"], "0700");
  EXPECT_THAT(directory.text, HasSubstr("mode 0700"));
  for (const char* topic : {"cache writes", "cache locks", "cache entries"}) {
    const Finding finding = examine(topic);
    EXPECT_EQ(finding.level, FindingLevel::kOk) << topic << ": " << finding.text;
    EXPECT_FALSE(finding.text.empty()) << topic;
  }
  const Finding file_system = examine("cache file system");
  EXPECT_GT(file_system.values["free_bytes"], 0);
  EXPECT_TRUE(fs::is_empty(options_.cache_dir + "/v1/tmp")) << "what was tried is removed";
}

TEST_F(DoctorCacheTest, EntriesAndDamagedOnesAreCounted) {
  fs::create_directories(options_.cache_dir + "/v1/objects/ab");
  chmod(options_.cache_dir.c_str(), 0700);
  std::ofstream(options_.cache_dir + "/v1/objects/ab/x.pjk") << "12345";
  std::ofstream(options_.cache_dir + "/v1/objects/ab/y.pjk") << "1234567";
  std::ofstream(options_.cache_dir + "/v1/objects/ab/z.other") << "1";
  Finding entries = examine("cache entries");
  EXPECT_EQ(entries.level, FindingLevel::kOk);
  EXPECT_EQ(entries.values["entries"], 2);
  EXPECT_EQ(entries.values["bytes"], 12);
  fs::create_directories(options_.cache_dir + "/v1/bad");
  std::ofstream(options_.cache_dir + "/v1/bad/0.pjk") << "1";
  entries = examine("cache entries");
  EXPECT_EQ(entries.level, FindingLevel::kWarning);
  EXPECT_THAT(entries.text, HasSubstr("1 set aside as damaged"));
}

TEST_F(DoctorCacheTest, DirectoryThatOthersCanWriteIsAProblem) {
  fs::create_directories(options_.cache_dir);
  chmod(options_.cache_dir.c_str(), 0777);
  const Finding finding = examine("cache directory");
  EXPECT_EQ(finding.level, FindingLevel::kProblem);
  EXPECT_THAT(finding.advice, HasSubstr("PAGEJIT_CACHE_DIR"));
}

TEST_F(DoctorCacheTest, FileInTheDirectorysPlaceIsAProblem) {
  std::ofstream(options_.cache_dir) << "a file";
  EXPECT_EQ(examine("cache directory").level, FindingLevel::kProblem);
}

TEST_F(DoctorCacheTest, NoDirectoryIsAWarning) {
  options_.disk_cache = false;
  EXPECT_EQ(examine("cache directory").level, FindingLevel::kWarning);
  EXPECT_FALSE(fs::exists(options_.cache_dir));
}

TEST_F(DoctorCacheTest, WritesThatFailAreAProblemWithTheirReason) {
  for (const auto& [call, error] : {std::pair(Call::kWrite, ENOSPC), std::pair(Call::kFsync, EIO),
                                    std::pair(Call::kRename, EROFS)}) {
    FaultFileSystem files;
    files.fail_every(call, error);
    const Finding finding = examine("cache writes", &files);
    EXPECT_EQ(finding.level, FindingLevel::kProblem);
    EXPECT_THAT(finding.text, HasSubstr(std::strerror(error)));
  }
}

TEST_F(DoctorCacheTest, LocksThatDoNotWorkAreAWarning) {
  FaultFileSystem files;
  files.fail_every(Call::kLock, ENOLCK);
  const Finding finding = examine("cache locks", &files);
  EXPECT_EQ(finding.level, FindingLevel::kWarning);
  EXPECT_THAT(finding.text, HasSubstr("a free lock cannot be taken: "));
}

// The third try is that of the child.
TEST_F(DoctorCacheTest, LocksThatOtherProcessesCannotTakeAreAWarning) {
  FaultFileSystem files;
  int num_locks = 0;
  files.before = [&](int, Call call) {
    return call == Call::kLock && ++num_locks > 2 ? ENOLCK : 0;
  };
  EXPECT_THAT(examine("cache locks", &files).text, HasSubstr("another process cannot take"));
}

}  // namespace
}  // namespace pagejit::cli
