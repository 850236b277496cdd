#include "runtime/jit/nvrtc_library.h"

#include <dlfcn.h>

#include "runtime/jit/elf_build_id.h"
#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class NvrtcLibraryTest : public ::testing::Test {
 protected:
  // A folder with a stand-in and builtins of these names.
  std::string install(const std::string& folder, const std::string& stub, const std::string& name,
                      const std::vector<std::string>& builtins) {
    for (const std::string& builtin : builtins) {
      root_.copy(Stubs::builtins(), folder + "/libnvrtc-builtins.so." + builtin);
    }
    return root_.copy(stub, folder + "/" + name);
  }
  Status inspect_error(const std::string& path) {
    Result<NvrtcFiles> files = inspect_nvrtc(path);
    EXPECT_FALSE(files) << path;
    EXPECT_EQ(files.status().code(), StatusCode::kCompilerUnavailable);
    return files.status();
  }

  TempFolder root_;
};

TEST_F(NvrtcLibraryTest, InspectNamesVersionAndBuildIds) {
  const std::string path = install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7"});
  Result<NvrtcFiles> files = inspect_nvrtc(path);
  ASSERT_TRUE(files) << files.status().to_string();
  EXPECT_EQ(files->version.to_string(), "12.7");
  EXPECT_THAT(files->builtins, EndsWith("/a/libnvrtc-builtins.so.12.7"));
  EXPECT_EQ(files->library_build_id, *read_elf_build_id(Stubs::nvrtc_12_7()));
  EXPECT_EQ(files->identity(), "nvrtc 12.7 build-id " + files->library_build_id + " builtins " +
                                   *read_elf_build_id(Stubs::builtins()));
}

TEST_F(NvrtcLibraryTest, InspectLoadsNothing) {
  const std::string path = install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7"});
  ASSERT_TRUE(inspect_nvrtc(path));
  EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST_F(NvrtcLibraryTest, IdentityDoesNotDependOnTheFolder) {
  const std::string a = install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7"});
  const std::string b = install("b", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7"});
  const std::string c = install("c", Stubs::nvrtc_12_11(), "libnvrtc.so.12", {"12.11"});
  EXPECT_EQ(inspect_nvrtc(a)->identity(), inspect_nvrtc(b)->identity());
  EXPECT_NE(inspect_nvrtc(a)->identity(), inspect_nvrtc(c)->identity());
}

TEST_F(NvrtcLibraryTest, FullNameBehindALinkChoosesAmongSeveralBuiltins) {
  install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12.7.127", {"12.7", "12.11", "13.0", "12.7.127"});
  const std::string link = root_.link("libnvrtc.so.12.7.127", "a/libnvrtc.so.12");
  EXPECT_EQ(inspect_nvrtc(link)->version.to_string(), "12.7");
  const std::string plain = root_.copy(Stubs::nvrtc_12_7(), "a/libnvrtc.so");
  EXPECT_EQ(inspect_nvrtc(plain)->version.to_string(), "13.0");
}

TEST_F(NvrtcLibraryTest, BuiltinsBesideTheFileBehindALinkAreFound) {
  const std::string real = install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7"});
  const std::string link = root_.link(real, "b/libnvrtc.so.12");
  Result<NvrtcFiles> files = inspect_nvrtc(link);
  ASSERT_TRUE(files) << files.status().to_string();
  EXPECT_THAT(files->builtins, HasSubstr("/a/"));
}

TEST_F(NvrtcLibraryTest, UnusableFilesAreRefusedWithTheReason) {
  EXPECT_THAT(inspect_error(root_.write("t/libnvrtc.so.13", "not a library")).message(),
              HasSubstr("t/libnvrtc.so.13: not an ELF file"));
  EXPECT_THAT(
      inspect_error(install("o", Stubs::nvrtc_12_3(), "libnvrtc.so.12", {"12.3"})).message(),
      HasSubstr("version 12.3 is too old, 12.4 or later is needed"));
  EXPECT_THAT(inspect_error(install("m", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {})).message(),
              HasSubstr("no libnvrtc-builtins.so of its version beside it"));
  EXPECT_THAT(
      inspect_error(install("w", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"13.0"})).message(),
      HasSubstr("no libnvrtc-builtins.so of its version beside it"));
  EXPECT_THAT(
      inspect_error(install("n", Stubs::without_build_id(), "libnvrtc.so.12", {"12.7"})).message(),
      HasSubstr("no GNU build-id"));
  const std::string broken = install("g", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {});
  root_.write("g/libnvrtc-builtins.so.12.7", "garbage");
  EXPECT_THAT(inspect_error(broken).message(), HasSubstr("builtins.so.12.7: not an ELF file"));
}

TEST_F(NvrtcLibraryTest, OpensByAbsolutePathAndOpensTheBuiltinsToo) {
  const std::string path = install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7"});
  Result<NvrtcFiles> files = inspect_nvrtc(path);
  auto library = NvrtcLibrary::open(*files);
  ASSERT_TRUE(library) << library.status().to_string();
  EXPECT_EQ((*library)->version(), (NvrtcVersion{12, 7}));
  EXPECT_THAT((*library)->supported_archs(), ::testing::ElementsAre(80, 90, 100, 120));
  EXPECT_NE(dlopen(files->builtins.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
  EXPECT_EQ((*library)->files().identity(), files->identity());
}

TEST_F(NvrtcLibraryTest, LibraryThatSaysAnotherVersionGetsThatVersionsBuiltins) {
  install("a", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {"12.7", "12.8"});
  Result<NvrtcFiles> files = inspect_nvrtc(root_ / "a/libnvrtc.so.12");
  ASSERT_EQ(files->version.to_string(), "12.8");  // by the names, the newest
  auto library = NvrtcLibrary::open(*files);
  ASSERT_TRUE(library) << library.status().to_string();
  EXPECT_EQ((*library)->version().to_string(), "12.7");
  EXPECT_THAT((*library)->files().builtins, EndsWith("so.12.7"));
  EXPECT_NE((*library)->files().identity(), files->identity());
}

TEST_F(NvrtcLibraryTest, OpenRefusesWhatOnlyLoadingShows) {
  const auto open_error = [](const std::string& path) {
    Result<NvrtcFiles> files = inspect_nvrtc(path);
    EXPECT_TRUE(files) << files.status().to_string();
    auto library = NvrtcLibrary::open(*files);
    EXPECT_FALSE(library);
    EXPECT_EQ(library.status().code(), StatusCode::kCompilerUnavailable);
    return library.status().message();
  };
  EXPECT_THAT(open_error(install("o", Stubs::nvrtc_12_3(), "libnvrtc.so.12", {"12.7"})),
              HasSubstr("version 12.3 is too old"));
  EXPECT_THAT(open_error(install("i", Stubs::nvrtc_incomplete(), "libnvrtc.so.12", {"12.6"})),
              HasSubstr("has no function nvrtcGetCUBIN"));
  EXPECT_THAT(open_error(install("b", Stubs::builtins(), "libnvrtc.so.12", {"12.6"})),
              HasSubstr("has no function nvrtcVersion"));
  EXPECT_THAT(open_error(install("v", Stubs::nvrtc_12_11(), "libnvrtc.so.12", {"12.10"})),
              HasSubstr("builtins cannot be opened"));
}

class NvrtcFinderTest : public NvrtcLibraryTest {
 protected:
  NvrtcSearch search_ = closed_search(root_);
};

TEST_F(NvrtcFinderTest, SkipsUnusableCandidates) {
  root_.write("usr/local/cuda-13.0/lib64/libnvrtc.so.13", "text");
  install("usr/local/cuda-12.3/lib64", Stubs::nvrtc_12_3(), "libnvrtc.so.12", {"12.3"});
  install("usr/local/cuda-12.0/lib64", Stubs::nvrtc_12_11(), "libnvrtc.so.12", {"12.11"});
  NvrtcFinder finder(search_);
  Result<NvrtcFiles> files = finder.find(false);
  ASSERT_TRUE(files) << files.status().to_string();
  EXPECT_THAT(files->library, HasSubstr("cuda-12.0"));
}

TEST_F(NvrtcFinderTest, FailureNamesEachCandidateAndWhy) {
  root_.write("usr/local/cuda-13.0/lib64/libnvrtc.so.13", "text");
  install("usr/local/cuda-12.3/lib64", Stubs::nvrtc_12_3(), "libnvrtc.so.12", {"12.3"});
  install("home/lib64", Stubs::nvrtc_12_7(), "libnvrtc.so.12", {});
  search_.environment = environment_of({{"CUDA_HOME", root_ / "home"}});
  NvrtcFinder finder(search_);
  Result<NvrtcFiles> files = finder.find(false);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.status().code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(files.status().message(),
              AllOf(HasSubstr("cuda-13.0/lib64/libnvrtc.so.13: not an ELF file (toolkit)"),
                    HasSubstr("12.3 is too old"), HasSubstr("(CUDA_HOME)")));
  EXPECT_THAT(files.status().detail(), HasSubstr("looked at "));
}

TEST_F(NvrtcFinderTest, NothingFoundSaysWhatToDo) {
  NvrtcFinder finder(search_);
  const Status status = finder.find(false).status();
  EXPECT_EQ(status.code(), StatusCode::kCompilerUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("no NVRTC found"), HasSubstr("PAGEJIT_NVRTC")));
  search_.explicit_path = root_ / "absent";
  NvrtcFinder explicit_finder(search_);
  EXPECT_THAT(explicit_finder.find(false).status().message(),
              AllOf(HasSubstr("no NVRTC at the given path"), HasSubstr("/absent")));
}

TEST_F(NvrtcFinderTest, OneThatAppearsLaterIsFound) {
  NvrtcFinder finder(search_);
  EXPECT_FALSE(finder.find(true));
  install("usr/local/cuda/lib64", Stubs::nvrtc_12_11(), "libnvrtc.so.12", {"12.11"});
  EXPECT_TRUE(finder.find(true));
  EXPECT_TRUE(finder.open());
}

TEST_F(NvrtcFinderTest, CandidateThatCannotBeOpenedIsDroppedAndTheIdentityFollows) {
  install("usr/local/cuda/lib64", Stubs::nvrtc_incomplete(), "libnvrtc.so.12", {"12.6"});
  install("usr/local/cuda-12.9/lib64", Stubs::nvrtc_12_11(), "libnvrtc.so.12", {"12.11"});
  NvrtcFinder finder(search_);
  const std::string before = finder.find(false)->identity();
  EXPECT_THAT(before, HasSubstr("nvrtc 12.6"));
  auto library = finder.open();
  ASSERT_TRUE(library) << library.status().to_string();
  EXPECT_EQ((*library)->version().to_string(), "12.11");
  EXPECT_EQ(finder.find(false)->identity(), (*library)->files().identity());
}

TEST_F(NvrtcFinderTest, WhereNoCandidateOpensTheReasonIsKept) {
  install("usr/local/cuda/lib64", Stubs::nvrtc_incomplete(), "libnvrtc.so.12", {"12.6"});
  NvrtcFinder finder(search_);
  EXPECT_TRUE(finder.find(false));
  for (int i = 0; i < 2; ++i) {
    auto library = finder.open();
    ASSERT_FALSE(library);
    EXPECT_THAT(library.status().message(), HasSubstr("has no function nvrtcGetCUBIN"));
  }
}

TEST_F(NvrtcFinderTest, LibraryThatIsOpenInTheProcessComesFirst) {
  const std::string open = install("x", Stubs::nvrtc_with_soname(), "libnvrtc.so.12", {"12.5"});
  install("usr/local/cuda/lib64", Stubs::nvrtc_12_11(), "libnvrtc.so.12", {"12.11"});
  for (const char* soname : kNvrtcSonames) {
    if (dlopen(soname, RTLD_NOW | RTLD_NOLOAD) != nullptr) {
      GTEST_SKIP() << "the real one is open already; ctest gives each test a process of its own";
    }
  }
  void* handle = dlopen(open.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  search_.ask_loader = true;
  {
    NvrtcFinder finder(search_);
    Result<NvrtcFiles> files = finder.find(false);
    ASSERT_TRUE(files) << files.status().to_string();
    EXPECT_EQ(files->library, open);
  }
  search_.explicit_path = root_ / "usr/local/cuda";
  NvrtcFinder finder(search_);
  EXPECT_THAT(finder.find(false)->library, Not(HasSubstr("/x/")));
}

TEST_F(NvrtcFinderTest, RealLibraryIsIdentifiedWithoutLoadingIt) {
  PAGEJIT_NEEDS_NVRTC();
  search_.explicit_path = real_nvrtc();
  const bool was_open = dlopen(real_nvrtc().c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
  NvrtcFinder finder(search_);
  Result<NvrtcFiles> files = finder.find(false);
  ASSERT_TRUE(files) << files.status().to_string();
  EXPECT_EQ(dlopen(real_nvrtc().c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr, was_open);
  auto library = finder.open();
  ASSERT_TRUE(library) << library.status().to_string();
  EXPECT_EQ((*library)->files().identity(), files->identity());
  EXPECT_EQ((*library)->version(), files->version);
}

}  // namespace
}  // namespace pagejit::jit
