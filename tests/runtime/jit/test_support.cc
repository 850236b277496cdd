#include "tests/runtime/jit/test_support.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/jit/nvrtc_library.h"

namespace pagejit::jit {
namespace fs = std::filesystem;

TempFolder::TempFolder() : path_(fs::temp_directory_path() / "jit-test-XXXXXX") {
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, const std::string& content) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string TempFolder::write_program(const std::string& name, const std::string& content) const {
  const std::string path = write(name, content);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

std::string TempFolder::copy(const std::string& from, const std::string& name) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  fs::copy_file(from, path);
  return path;
}

std::string TempFolder::link(const std::string& target, const std::string& name) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  fs::create_symlink(target, path);
  return path;
}

std::vector<std::string> TempFolder::list() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::string Stubs::nvrtc_12_3() { return STUB_12_3; }
std::string Stubs::nvrtc_12_7() { return STUB_12_7; }
std::string Stubs::nvrtc_12_11() { return STUB_12_11; }
std::string Stubs::nvrtc_incomplete() { return STUB_INCOMPLETE; }
std::string Stubs::nvrtc_with_soname() { return STUB_WITH_SONAME; }
std::string Stubs::builtins() { return STUB_BUILTINS; }
std::string Stubs::without_build_id() { return STUB_NO_BUILD_ID; }

NvrtcSearch closed_search(const TempFolder& root) {
  NvrtcSearch search;
  search.environment = environment_of({});
  search.root = root.path();
  search.ask_loader = false;
  return search;
}

std::string real_nvrtc() {
  static const std::string path = [] {
    NvrtcSearch search;
    if (const char* given = getenv("PAGEJIT_NVRTC")) search.explicit_path = given;
    search.library_folder = folder_of_this_library();
    search.ask_loader = false;
    NvrtcFinder finder(search);
    Result<NvrtcFiles> files = finder.find(/*may_load=*/false);
    return files ? files->library : std::string();
  }();
  return path;
}

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

int num_open_fds() {
  const fs::directory_iterator entries("/proc/self/fd");
  return static_cast<int>(std::distance(fs::begin(entries), fs::end(entries)));
}

KernelSource source_of(const std::string& text, Target target) {
  KernelSource source;
  source.text = text;
  source.kernel_name = "tiny";
  source.target = target;
  return source;
}

const char kTinyKernel[] = R"(
extern "C" __global__ void __launch_bounds__(128) tiny(float* p, int n) {
  __shared__ float values[128];
  values[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = values[(threadIdx.x + n) % 128];
}
)";

}  // namespace pagejit::jit
