#include "runtime/jit/nvrtc_search.h"

#include <sys/stat.h>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NvrtcSearchTest : public ::testing::Test {
 protected:
  std::vector<std::string> paths(const NvrtcSearch& search) {
    std::vector<std::string> result;
    searched_.clear();
    const auto note = [&](const NvrtcCandidate& candidate) {
      result.push_back(candidate.path);
      return false;
    };
    EXPECT_FALSE(search_nvrtc(search, note, searched_));
    return result;
  }
  // Files with contents of their own.
  std::string put(const std::string& name) { return root_.write(name, name); }

  TempFolder root_;
  NvrtcSearch search_ = closed_search(root_);
  std::vector<std::string> searched_;  // of the last search
};

TEST_F(NvrtcSearchTest, NothingThereGivesTheListOfPlaces) {
  EXPECT_THAT(paths(search_), IsEmpty());
  EXPECT_THAT(searched_, Contains(HasSubstr("/usr/local/cuda")));
  EXPECT_THAT(searched_, Contains(HasSubstr("LD_LIBRARY_PATH")));
}

TEST_F(NvrtcSearchTest, NothingIsLookedAtAfterTheFileThatIsTaken) {
  const std::string home = put("home/lib64/libnvrtc.so.13");
  put("usr/local/cuda/lib64/libnvrtc.so.13");
  search_.environment = environment_of({{"CUDA_HOME", root_ / "home"}});
  std::vector<std::string> shown;
  const auto take = [&](const NvrtcCandidate& candidate) {
    shown.push_back(candidate.path);
    return true;
  };
  EXPECT_TRUE(search_nvrtc(search_, take, searched_));
  EXPECT_THAT(shown, ElementsAre(home));
  EXPECT_THAT(searched_.back(), HasSubstr(root_ / "home"));
}

TEST_F(NvrtcSearchTest, PlacesAreTriedInTheDocumentedOrder) {
  const std::string loader13 = put("ld/libnvrtc.so.13");
  const std::string loader12 = put("ld/libnvrtc.so.12");
  const std::string home = put("home/lib64/libnvrtc.so.12");
  const std::string cuda = put("usr/local/cuda/targets/x86_64-linux/lib/libnvrtc.so.13");
  const std::string cuda130 = put("usr/local/cuda-13.0/lib/libnvrtc.so.13");
  const std::string cuda128 = put("usr/local/cuda-12.8/lib64/libnvrtc.so.12");
  const std::string venv = put("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string venv12 =
      put("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string conda = put("conda/lib/libnvrtc.so.12");
  const std::string python_path = put("pp/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string user =
      put("user/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string debian = put("usr/lib/python3/dist-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string own = put("repo/.deps/python/nvidia/cu13/lib/libnvrtc.so.13");
  search_.environment = environment_of({{"LD_LIBRARY_PATH", root_ / "ld"},
                                        {"CUDA_HOME", root_ / "home"},
                                        {"VIRTUAL_ENV", root_ / "venv"},
                                        {"CONDA_PREFIX", root_ / "conda"},
                                        {"PYTHONPATH", "/nonexistent:" + (root_ / "pp")},
                                        {"HOME", root_ / "user"}});
  search_.library_folder = root_ / "repo/build/runtime";
#if !defined(__aarch64__)
  EXPECT_THAT(paths(search_), ElementsAre(loader13, loader12, home, cuda, cuda130, cuda128, venv,
                                          venv12, conda, python_path, user, debian, own));
#endif
}

TEST_F(NvrtcSearchTest, NewerToolkitsAndPythonsComeFirst) {
  const std::string old_cuda = put("usr/local/cuda-12.8/lib64/libnvrtc.so.12");
  const std::string new_cuda = put("usr/local/cuda-13.1/lib64/libnvrtc.so.13");
  const std::string wheel = "/site-packages/nvidia/cu13/lib/libnvrtc.so.13";
  const std::string old_python = put("usr/local/lib/python3.9" + wheel);
  const std::string new_python = put("usr/local/lib/python3.12" + wheel);
  EXPECT_THAT(paths(search_), ElementsAre(new_cuda, old_cuda, new_python, old_python));
}

TEST_F(NvrtcSearchTest, OneFileUnderTwoNamesIsOneCandidate) {
  const std::string file = put("usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  root_.link("cuda-13.0", "usr/local/cuda");
  root_.link("lib64", "usr/local/cuda-13.0/lib");
  EXPECT_THAT(paths(search_), ElementsAre(root_ / "usr/local/cuda/lib64/libnvrtc.so.13"));
}

TEST_F(NvrtcSearchTest, ExplicitPathExcludesAllOthers) {
  put("usr/local/cuda/lib64/libnvrtc.so.13");
  const std::string file = put("given/my-nvrtc.so");
  search_.explicit_path = file;
  EXPECT_THAT(paths(search_), ElementsAre(file));
  search_.explicit_path = root_ / "absent";
  EXPECT_THAT(paths(search_), IsEmpty());
}

TEST_F(NvrtcSearchTest, ExplicitFolderMayBeALibraryFolderAToolkitOrASite) {
  const std::string folder = put("a/libnvrtc.so.12");
  search_.explicit_path = root_ / "a";
  EXPECT_THAT(paths(search_), ElementsAre(folder));
  const std::string toolkit = put("b/lib64/libnvrtc.so.13");
  search_.explicit_path = root_ / "b";
  EXPECT_THAT(paths(search_), ElementsAre(toolkit));
  const std::string site = put("c/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  search_.explicit_path = root_ / "c";
  EXPECT_THAT(paths(search_), ElementsAre(site));
}

TEST_F(NvrtcSearchTest, SetUpFolderIsFoundFiveParentsUpAndNoFurther) {
  const std::string own = put("r/.deps/python/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  search_.library_folder = root_ / "r/build/release/tests/runtime/jit";
  EXPECT_THAT(paths(search_), ElementsAre(own));
  search_.library_folder = root_ / "r/build/release/tests/runtime/jit/x";
  EXPECT_THAT(paths(search_), IsEmpty());
}

TEST_F(NvrtcSearchTest, SetUpFolderThatAnyoneMayWriteIsNotTrusted) {
  put("r/.deps/python/nvidia/cu13/lib/libnvrtc.so.13");
  search_.library_folder = root_ / "r";
  EXPECT_EQ(paths(search_).size(), 1u);
  ASSERT_EQ(chmod((root_ / "r/.deps").c_str(), 0777), 0);
  EXPECT_THAT(paths(search_), IsEmpty());
}

TEST_F(NvrtcSearchTest, FolderOfThisLibraryIsAbsolute) {
  EXPECT_TRUE(folder_of_this_library().starts_with("/")) << folder_of_this_library();
}

}  // namespace
}  // namespace pagejit::jit
