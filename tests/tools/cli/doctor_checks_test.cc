// What doctor says of variables, drivers, GPUs, libraries and places; and its report.
#include "tools/cli/doctor_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "cache/bundle_writer.h"
#include "runtime/metadata.h"

namespace pagejit::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

Finding find(const DoctorReport& report, const std::string& topic) {
  for (const Finding& finding : report.findings()) {
    if (finding.topic == topic) return finding;
  }
  ADD_FAILURE() << "nothing is said of " << topic;
  return {};
}

// ---- The report ----

TEST(DoctorReportTest, TextHasALevelAnAdviceAndASum) {
  DoctorReport report;
  report.ok("a", "good");
  report.warning("b", "so so", "do this");
  report.problem("c", "bad", "do that");
  EXPECT_EQ(report.to_text(),
            "ok       a: good\n"
            "warning  b: so so\n           do this\n"
            "problem  c: bad\n           do that\n"
            "1 warning, 1 problem\n");
}

TEST(DoctorReportTest, JsonSurvivesBytesThatAreNoText) {
  DoctorReport report;
  report.ok("a", "\xff\"\n", {{"n", 3}});
  const auto json = nlohmann::json::parse(report.to_json("1.2.3", true));
  EXPECT_EQ(json["version"], "1.2.3");
  EXPECT_EQ(json["can_compile"], true);
  EXPECT_EQ(json["findings"][0]["values"]["n"], 3);
  EXPECT_EQ(json["findings"][0]["level"], "ok");
}

// ---- Variables ----

TEST(DoctorVariablesTest, EveryVariableOfTheOptionsIsKnown) {
  std::ifstream file(PAGEJIT_OPTIONS_HEADER);
  const std::string header{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> known = known_variables();
  const std::set<std::string> names(known.begin(), known.end());
  EXPECT_EQ(names.size(), known.size());
  static const std::regex kName("PAGEJIT_[A-Z_]*[A-Z]");
  int num_found = 0;
  for (std::sregex_iterator name(header.begin(), header.end(), kName), end; name != end; ++name) {
    if (name->str() == "PAGEJIT_EXPORT") continue;
    EXPECT_EQ(names.count(name->str()), 1u) << name->str();
    ++num_found;
  }
  EXPECT_GE(num_found, 20);
}

TEST(DoctorVariablesTest, SlipsAreToldFromWhatIsKnown) {
  DoctorReport report;
  examine_variables({"PAGEJIT_CACHE_DIR=/x", "PAGEJIT_CACHEDIR=/y", "PAGEJIT_JITT=on",
                     "PAGEJIT_COLOUR_OF_THE_SKY=blue", "PAGEJIT_LOG=", "HOME=/root"},
                    report);
  EXPECT_EQ(report.findings().size(), 5u) << "others' variables are not looked at";
  EXPECT_EQ(find(report, "variable PAGEJIT_CACHE_DIR").level, FindingLevel::kOk);
  EXPECT_EQ(find(report, "variable PAGEJIT_CACHE_DIR").text, "/x");
  EXPECT_EQ(find(report, "variable PAGEJIT_LOG").level, FindingLevel::kOk);
  EXPECT_EQ(find(report, "variable PAGEJIT_CACHEDIR").level, FindingLevel::kWarning);
  EXPECT_EQ(find(report, "variable PAGEJIT_CACHEDIR").advice, "did you mean PAGEJIT_CACHE_DIR?");
  EXPECT_EQ(find(report, "variable PAGEJIT_JITT").advice, "did you mean PAGEJIT_JIT?");
  EXPECT_THAT(find(report, "variable PAGEJIT_COLOUR_OF_THE_SKY").advice, HasSubstr("remove it"));
}

// ---- Devices: the stub driver has one GPU, sm_90, and says it is of CUDA 12 or later ----

FoundNvrtc nvrtc_with(std::vector<const char*> targets, int major = 12) {
  FoundNvrtc nvrtc{.is_usable = true, .major = major, .targets = {}};
  for (const char* target : targets) nvrtc.targets.push_back(*parse_target(target));
  return nvrtc;
}

DoctorReport devices(const FoundNvrtc& nvrtc, std::vector<int>* sms = nullptr) {
  EngineOptions options;
  options.driver = PAGEJIT_STUB_DRIVER;
  DoctorReport report;
  const std::vector<int> found = examine_devices(options, nvrtc, report);
  if (sms != nullptr) *sms = found;
  return report;
}

TEST(DoctorDevicesTest, GpuHasTheFirstTargetThatNvrtcServes) {
  std::vector<int> sms;
  const DoctorReport report = devices(nvrtc_with({"sm_80", "sm_90", "sm_90a"}), &sms);
  EXPECT_EQ(sms, std::vector<int>{90});
  EXPECT_EQ(find(report, "driver").level, FindingLevel::kOk);
  EXPECT_EQ(find(report, "driver").values["path"], PAGEJIT_STUB_DRIVER);
  const Finding gpu = find(report, "GPU 0");
  EXPECT_EQ(gpu.level, FindingLevel::kOk);
  EXPECT_THAT(gpu.text, HasSubstr("compute capability 9.0: kernels are compiled for sm_90a"));
  EXPECT_EQ(gpu.values["target"], "sm_90a");
}

TEST(DoctorDevicesTest, NvrtcThatIsTooOldForTheGpuIsSaid) {
  EXPECT_EQ(find(devices(nvrtc_with({"sm_90"})), "GPU 0").level, FindingLevel::kWarning);
  EXPECT_EQ(find(devices(nvrtc_with({"sm_80"})), "GPU 0").level, FindingLevel::kProblem);
  const Finding without = find(devices(FoundNvrtc()), "GPU 0");
  EXPECT_EQ(without.level, FindingLevel::kOk);
  EXPECT_THAT(without.text, HasSubstr("best served by sm_90a"));
}

TEST(DoctorDevicesTest, NvrtcThatIsTooNewForTheDriverIsSaid) {
  const Finding driver = find(devices(nvrtc_with({"sm_90a"}, 99)), "driver");
  EXPECT_EQ(driver.level, FindingLevel::kWarning);
  EXPECT_THAT(driver.advice, HasSubstr("what NVRTC 99 makes"));
}

TEST(DoctorDevicesTest, NoDriverIsAWarning) {
  EngineOptions options;
  options.driver = "/nonexistent/libcuda.so.1";
  options.emulator_path = "/nonexistent/emulator.so";
  DoctorReport report;
  EXPECT_TRUE(examine_devices(options, FoundNvrtc(), report).empty());
  EXPECT_EQ(find(report, "driver").level, FindingLevel::kWarning);
  EXPECT_EQ(find(report, "emulator").level, FindingLevel::kWarning);
}

// ---- Compilers and libraries ----

TEST(DoctorCompilersTest, MissingOnesAreSaidWithWhatNeedsThem) {
  EngineOptions options;
  options.nvrtc_path = "/nonexistent";
  options.host_compiler = "/nonexistent/c++";
  DoctorReport report;
  EXPECT_FALSE(examine_nvrtc(options, report).is_usable);
  examine_host_compiler(options, report);
  EXPECT_EQ(find(report, "NVRTC").level, FindingLevel::kProblem);
  EXPECT_EQ(find(report, "C++ compiler").level, FindingLevel::kWarning);
}

TEST(DoctorCompilersTest, OptionalLibrariesAreNoProblemWhereNothingNeedsThem) {
  DoctorReport report;
  examine_optional_libraries(EngineOptions(), report);
  EXPECT_EQ(find(report, "libcurl").level, FindingLevel::kOk);
  EXPECT_EQ(find(report, "libsodium").level, FindingLevel::kOk);
}

// ---- Places ----

class DoctorLayersTest : public ::testing::Test {
 protected:
  DoctorLayersTest() {
    folder = (fs::temp_directory_path() / "pagejit-doctor-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
  }
  ~DoctorLayersTest() override { fs::remove_all(folder); }

  // One kernel for that target.
  std::string make_bundle(const char* target) {
    KernelMetadata metadata;
    metadata.target = target;
    cache::Entry entry;
    entry.metadata = encode_metadata(metadata);
    cache::BundleWriter writer;
    EXPECT_TRUE(writer.add(entry));
    const std::string path = folder + "/" + target + ".pjb";
    EXPECT_TRUE(writer.write_file(path));
    return path;
  }
  static Finding bundle_finding(const std::string& path, const std::vector<int>& sms) {
    EngineOptions options;
    options.bundles = {path};
    DoctorReport report;
    examine_bundles(options, sms, report);
    return find(report, "bundle");
  }

  std::string folder;
};

TEST_F(DoctorLayersTest, BundlesThatCannotBeUsedAreSaid) {
  EXPECT_EQ(bundle_finding(folder + "/missing", {90}).level, FindingLevel::kWarning);
  EXPECT_EQ(bundle_finding(folder, {90}).level, FindingLevel::kWarning) << "a folder";
  const std::string path = make_bundle("sm_90a");
  chmod(path.c_str(), 0666);
  EXPECT_EQ(bundle_finding(path, {90}).level, FindingLevel::kWarning) << "others can write it";
}

TEST_F(DoctorLayersTest, BundlesAreComparedWithTheGpus) {
  const std::string path = make_bundle("sm_80");
  EXPECT_EQ(bundle_finding(path, {}).level, FindingLevel::kOk);
  EXPECT_EQ(bundle_finding(path, {86, 80}).level, FindingLevel::kOk);
  const Finding finding = bundle_finding(path, {86, 90, 90});
  EXPECT_EQ(finding.level, FindingLevel::kWarning);
  EXPECT_THAT(finding.text,
              HasSubstr("1 kernel, 1 for sm_80; none for this machine's GPUs of 9.0"));
}

TEST_F(DoctorLayersTest, ReadOnlyDirectoriesThatCannotBeUsedAreSaid) {
  std::ofstream(folder + "/file") << "x";
  fs::create_directory(folder + "/open");
  chmod((folder + "/open").c_str(), 0777);
  const auto level_of = [&](const std::string& directory) {
    EngineOptions options;
    options.read_only_dirs = {folder + directory};
    DoctorReport report;
    examine_read_only_dirs(options, report);
    return find(report, "read-only directory").level;
  };
  EXPECT_EQ(level_of("/."), FindingLevel::kOk);
  EXPECT_EQ(level_of("/file"), FindingLevel::kWarning);
  EXPECT_EQ(level_of("/open"), FindingLevel::kWarning) << "others can write there";
}

// Answers everything alike.
class OneAnswer final : public cache::HttpTransport {
 public:
  explicit OneAnswer(cache::HttpAnswer answer) : answer_(std::move(answer)) {}
  cache::HttpAnswer send(const cache::HttpRequest&) override { return answer_; }

 private:
  const cache::HttpAnswer answer_;
};

TEST(DoctorRemoteTest, RemoteIsAskedAndJudged) {
  const auto finding_of = [](const std::string& url, bool require_signed,
                             cache::HttpAnswer answer) {
    EngineOptions options;
    options.remote = url;
    options.require_signed = require_signed;
    DoctorReport report;
    examine_remote(options, report, std::make_shared<OneAnswer>(std::move(answer)));
    return find(report, "remote");
  };
  cache::HttpAnswer missing;
  missing.status = 404;
  cache::HttpAnswer refused;
  refused.failure = cache::HttpFailure::kConnect;
  refused.reason = "connection refused";
  EXPECT_EQ(finding_of("https://kernels.example/v1", false, missing).level, FindingLevel::kOk);
  EXPECT_EQ(finding_of("http://kernels.example/v1", false, missing).level, FindingLevel::kWarning);
  EXPECT_EQ(finding_of("http://kernels.example/v1", true, missing).level, FindingLevel::kOk);
  EXPECT_EQ(finding_of("ftp://kernels.example/v1", false, missing).level, FindingLevel::kProblem);
  const Finding finding = finding_of("https://me:secret@kernels.example/v1", false, refused);
  EXPECT_EQ(finding.level, FindingLevel::kWarning);
  EXPECT_THAT(finding.text, HasSubstr("connection refused"));
  EXPECT_THAT(finding.text, Not(HasSubstr("secret")));
  DoctorReport none;
  examine_remote(EngineOptions(), none);
  EXPECT_TRUE(none.findings().empty());
}

}  // namespace
}  // namespace pagejit::cli
