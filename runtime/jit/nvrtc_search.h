// Where NVRTC may lie: the places and their order. Only looks at folders; opens and loads nothing.
// Thread-safety: free functions without state.
//
// The order: the explicit path (then nothing else is searched); open in the process already
// (nvrtc_library.h); by SONAME as the loader would; CUDA_HOME, CUDA_PATH, /usr/local/cuda*; the
// wheels nvidia-cuda-nvrtc (nvidia/cu13/lib) and nvidia-cuda-nvrtc-cu12 (nvidia/cuda_nvrtc/lib)
// below site-packages; the same below .deps/python beside this library.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/jit/environment.h"

namespace pagejit::jit {

// The SONAMEs that are served, best first.
inline constexpr const char* kNvrtcSonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

struct NvrtcSearch {
  // A file, or a folder that holds one, itself or in lib64 or lib. "" = search.
  std::string explicit_path;
  Environment environment = process_environment();
  // The folder of the file that contains pagejit's code; see folder_of_this_library(). "" = none.
  std::string library_folder;
  // Stands before every absolute path of the system; for tests.
  std::string root;
  // Whether the dynamic loader is asked too: first for a library that is open already, last of all
  // by SONAME.
  bool ask_loader = true;
};

struct NvrtcCandidate {
  std::string path;
  std::string resolved;  // without symbolic links: two candidates of one file have the same
  std::string origin;    // "CUDA_HOME", "loader search path", ...
};

// Shows `use` the existing files one after another, best first and each once, until it answers
// true. Nothing later is looked at then: each folder costs system calls. Adds every folder or place
// that was looked at to `searched`, in order. False if `use` never answered true.
bool search_nvrtc(const NvrtcSearch& search, const std::function<bool(const NvrtcCandidate&)>& use,
                  std::vector<std::string>& searched);

// The folder of the shared library or program that this code is linked into; "" where that is not
// known.
std::string folder_of_this_library();

}  // namespace pagejit::jit
