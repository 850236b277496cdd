#include "tools/inspect/disassembler.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "runtime/jit/file_io.h"
#include "runtime/jit/nvrtc_search.h"
#include "runtime/jit/subprocess.h"

namespace pagejit::inspect {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "nvdisasm";
// A kernel takes some tenths of a second, a library of hundreds some seconds.
constexpr std::chrono::seconds kTimeout{60};
// nvdisasm writes some 100 bytes for each of 16 bytes of code.
constexpr size_t kMaxListingBytes = size_t{512} << 20;
// build/release/tools is three folders below the one that has .deps.
constexpr int kFoldersAbove = 5;

bool is_program(const std::string& path) {
  return jit::is_file(path) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> candidates(const Environment& environment) {
  std::vector<std::string> folders = jit::split_path_list(environment("PATH").value_or(""));
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto home = environment(variable); home && !home->empty()) {
      folders.push_back(*home + "/bin");
    }
  }
  std::vector<std::string> toolkits;
  std::error_code error;
  for (fs::directory_iterator entry("/usr/local", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("cuda")) toolkits.push_back(entry->path().string() + "/bin");
  }
  std::sort(toolkits.begin(), toolkits.end());
  folders.insert(folders.end(), toolkits.begin(), toolkits.end());
  std::string folder = jit::folder_of_this_library();
  for (int i = 0; i < kFoldersAbove && folder.size() > 1; ++i) {
    folders.push_back(folder + "/.deps/python/nvidia/cu13/bin");
    folder = jit::folder_of(folder);
  }
  return folders;
}

}  // namespace

Result<std::string> find_disassembler(const std::string& path, const Environment& environment) {
  if (!path.empty()) {
    const std::string file = jit::is_folder(path) ? path + "/" + kName : path;
    if (is_program(file)) return jit::resolved_path(file);
    return Status(StatusCode::kNotFound, "nvdisasm: " + file + " is no program that can be run");
  }
  for (const std::string& folder : candidates(environment)) {
    const std::string file = folder + "/" + kName;
    if (is_program(file)) return jit::resolved_path(file);
  }
  return Status(StatusCode::kNotFound,
                "nvdisasm was not found in PATH, CUDA_HOME/bin, CUDA_PATH/bin and "
                "/usr/local/cuda*/bin, so nothing is said of instructions; it comes with the CUDA "
                "toolkit, or by `pip download --no-deps nvidia-cuda-nvdisasm` and unzipping what "
                "that fetches (then --nvdisasm FILE)");
}

Result<std::string> disassemble(const std::string& program, std::string_view cubin) {
  const Result<jit::PrivateFolder> folder = jit::PrivateFolder::create("");
  if (!folder) return folder.status();
  const std::string image = folder->path() + "/kernel.cubin";
  const std::string listing = folder->path() + "/listing";
  if (Status s = jit::write_new_file(image, cubin); !s) return s;
  jit::SubprocessRequest request;
  // Into a file, since a listing may be longer than what is kept of a program's output.
  request.command = {"/bin/sh", "-c", "exec \"$0\" -c -g \"$1\" >\"$2\"", program, image, listing};
  request.environment = {"LC_ALL=C"};
  request.folder = folder->path();
  request.timeout = kTimeout;
  const Result<jit::SubprocessResult> ran = jit::run_subprocess(request);
  if (!ran) return ran.status().with_context("nvdisasm");
  if (ran->end != jit::SubprocessResult::End::kExited || ran->exit_code != 0) {
    const bool is_late = ran->end == jit::SubprocessResult::End::kTimedOut;
    return Status(StatusCode::kCompilerUnavailable,
                  program + (is_late ? ": took more than 60 s"
                                     : ": failed with exit code " + std::to_string(ran->exit_code)),
                  ran->output);
  }
  return jit::read_file(listing, kMaxListingBytes);
}

}  // namespace pagejit::inspect
