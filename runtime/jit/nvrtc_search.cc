#include "runtime/jit/nvrtc_search.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "runtime/jit/file_io.h"
#include "runtime/jit/ld_cache.h"

namespace pagejit::jit {
namespace {

// Below a toolkit's root. lib64 and lib are usual; a toolkit from conda or a cross build has only
// targets/.
const char* const kToolkitFolders[] = {
    "lib64",
    "lib",
#if defined(__aarch64__)
    "targets/sbsa-linux/lib",
#else
    "targets/x86_64-linux/lib",
#endif
};

const char* const kWheelFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

// The deepest program of a build, build/release/tests/runtime/jit/jit_test, lies in a folder this
// far below the one that holds .deps.
constexpr int kParentsSearched = 5;

std::vector<std::string> folders_beginning_with(const std::string& parent,
                                                const std::string& prefix) {
  std::vector<std::string> names;
  DIR* folder = opendir(parent.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {  // a private stream: safe among threads
    const std::string name = entry->d_name;
    if (name.starts_with(prefix)) names.push_back(name);
  }
  closedir(folder);
  // Descending, so that cuda-13.0 comes before cuda-12.8 and python3.9 after python3.12 (shorter is
  // older).
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  return names;
}

class Searcher {
 public:
  Searcher(const NvrtcSearch& search, const std::function<bool(const NvrtcCandidate&)>& use,
           std::vector<std::string>& searched)
      : search_(search), use_(use), searched_(searched) {}

  // Each step looks at nothing once a candidate has been taken.
  bool run() {
    if (!search_.explicit_path.empty()) {
      explicit_path();
    } else {
      loader();
      toolkits();
      wheels();
      own_folder();
    }
    return taken_;
  }

 private:
  std::string variable(const char* name) const { return search_.environment(name).value_or(""); }

  void add_file(const std::string& path, const std::string& origin) {
    if (taken_ || !is_file(path)) return;
    std::string resolved = resolved_path(path);
    if (seen_.insert(resolved).second) taken_ = use_({path, std::move(resolved), origin});
  }

  void add_folder(const std::string& folder, const std::string& origin) {
    if (taken_) return;
    searched_.push_back(folder + " (" + origin + ")");
    for (const char* soname : kNvrtcSonames) add_file(folder + "/" + soname, origin);
  }

  void add_toolkit(const std::string& root, const std::string& origin) {
    if (taken_) return;
    if (!is_folder(root)) {
      searched_.push_back(root + " (" + origin + ")");
      return;
    }
    for (const char* folder : kToolkitFolders) add_folder(root + "/" + folder, origin);
  }

  void add_site(const std::string& site, const std::string& origin) {
    for (const char* folder : kWheelFolders) add_folder(site + "/" + folder, origin);
  }

  // `library_folder`/python3*/site-packages and the like.
  void add_sites_of_pythons(const std::string& library_folder, const std::string& origin) {
    if (taken_) return;
    for (const std::string& python : folders_beginning_with(library_folder, "python3")) {
      for (const char* packages : {"/site-packages", "/dist-packages"}) {
        const std::string site = library_folder + "/" + python + packages;
        if (is_folder(site)) add_site(site, origin);
      }
    }
  }

  void explicit_path() {
    const std::string origin = "explicit path";
    const std::string& path = search_.explicit_path;
    if (!is_folder(path)) {
      searched_.push_back(path + " (" + origin + ")");
      add_file(path, origin);
      return;
    }
    add_folder(path, origin);
    for (const char* folder : kToolkitFolders) add_folder(path + "/" + folder, origin);
    add_site(path, origin);
  }

  void loader() {
    const std::string origin = "loader search path";
    for (const char* soname : kNvrtcSonames) {
      if (taken_) return;
      searched_.push_back(std::string(soname) + " (LD_LIBRARY_PATH, ld.so.cache, default folders)");
      for (const std::string& path : loader_paths(soname, search_.environment, search_.root)) {
        add_file(path, origin);
      }
    }
  }

  void toolkits() {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const std::string root = variable(name); !root.empty()) add_toolkit(root, name);
    }
    const std::string local = search_.root + "/usr/local";
    add_toolkit(local + "/cuda", "toolkit");
    if (taken_) return;
    for (const std::string& name : folders_beginning_with(local, "cuda-")) {
      add_toolkit(local + "/" + name, "toolkit");
    }
  }

  void wheels() {
    if (const std::string env = variable("VIRTUAL_ENV"); !env.empty()) {
      add_sites_of_pythons(env + "/lib", "VIRTUAL_ENV");
    }
    if (const std::string env = variable("CONDA_PREFIX"); !env.empty()) {
      add_folder(env + "/lib", "CONDA_PREFIX");  // conda's own package lies beside all others
      add_sites_of_pythons(env + "/lib", "CONDA_PREFIX");
    }
    for (const std::string& site : split_path_list(variable("PYTHONPATH"))) {
      add_site(site, "PYTHONPATH");
    }
    if (const std::string home = variable("HOME"); !home.empty()) {
      add_sites_of_pythons(home + "/.local/lib", "user site-packages");
    }
    add_sites_of_pythons(search_.root + "/usr/local/lib", "site-packages");
    add_sites_of_pythons(search_.root + "/usr/lib", "site-packages");
  }

  // Code is loaded from there, and a parent may be a folder in which anyone can create another: it
  // must be ours or root's.
  static bool is_trusted(const std::string& folder) {
    struct stat info {};
    return stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
           (info.st_uid == 0 || info.st_uid == geteuid()) && (info.st_mode & S_IWOTH) == 0;
  }

  void own_folder() {
    std::string folder = search_.library_folder;
    for (int i = 0; i <= kParentsSearched && !folder.empty() && !taken_; ++i) {
      const std::string deps = (folder == "/" ? "" : folder) + "/.deps";
      if (is_trusted(deps)) {
        add_site(deps + "/python", "set-up");
      } else {
        searched_.push_back(deps + " (set-up)");
      }
      if (folder == "/" || folder == ".") break;
      folder = folder_of(folder);
    }
  }

  const NvrtcSearch& search_;
  const std::function<bool(const NvrtcCandidate&)>& use_;
  std::vector<std::string>& searched_;
  bool taken_ = false;
  std::unordered_set<std::string> seen_;
};

}  // namespace

bool search_nvrtc(const NvrtcSearch& search, const std::function<bool(const NvrtcCandidate&)>& use,
                  std::vector<std::string>& searched) {
  return Searcher(search, use, searched).run();
}

std::string folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 ||
      info.dli_fname == nullptr || info.dli_fname[0] == '\0') {
    return {};
  }
  // For a program dli_fname is argv[0], which is no path where the shell searched for it.
  const std::string path = resolved_path(info.dli_fname);
  if (path.front() != '/') return folder_of(resolved_path("/proc/self/exe"));
  return folder_of(path);
}

}  // namespace pagejit::jit
