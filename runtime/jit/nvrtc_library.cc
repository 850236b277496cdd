#include "runtime/jit/nvrtc_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "runtime/jit/elf_build_id.h"
#include "runtime/jit/file_io.h"
#include "runtime/loader_error.h"

namespace pagejit::jit {
namespace {

constexpr std::string_view kLibraryPrefix = "libnvrtc.so.";
constexpr std::string_view kBuiltinsPrefix = "libnvrtc-builtins.so.";

// "13", "12.4", "12.4.127": major and minor, the latter -1 where it is missing.
std::optional<NvrtcVersion> parse_version(std::string_view text) {
  NvrtcVersion version{0, -1};
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, version.major);
  if (parsed.ec != std::errc()) return std::nullopt;
  if (parsed.ptr == end) return version;
  if (*parsed.ptr != '.') return std::nullopt;
  parsed = std::from_chars(parsed.ptr + 1, end, version.minor);
  if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != '.')) return std::nullopt;
  return version;
}

std::optional<NvrtcVersion> version_in_name(const std::string& path, std::string_view prefix) {
  const std::string name = name_of(path);
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_version(std::string_view(name).substr(prefix.size()));
}

std::string builtins_name(NvrtcVersion version) {
  return std::string(kBuiltinsPrefix) + version.to_string();
}

// The version of the builtins that belong to the library at `path`: named by the library where its
// full name says so, else the newest of its major version in the folder.
std::optional<NvrtcVersion> find_builtins(const std::string& folder, const std::string& path) {
  std::optional<NvrtcVersion> wanted = version_in_name(resolved_path(path), kLibraryPrefix);
  if (!wanted) wanted = version_in_name(path, kLibraryPrefix);
  std::optional<NvrtcVersion> best;
  DIR* stream = opendir(folder.c_str());
  if (stream == nullptr) return std::nullopt;
  while (const dirent* entry = readdir(stream)) {
    const std::optional<NvrtcVersion> version = version_in_name(entry->d_name, kBuiltinsPrefix);
    if (!version || version->minor < 0) continue;
    if (wanted && version->major != wanted->major) continue;
    if (wanted && wanted->minor >= 0 && version->minor != wanted->minor) continue;
    if (builtins_name(*version) != entry->d_name) continue;  // libnvrtc-builtins.so.12.4.127
    if (!best || *version > *best) best = version;
  }
  closedir(stream);
  return best;
}

Status unavailable(std::string reason) {
  return Status(StatusCode::kCompilerUnavailable, std::move(reason));
}

Status check_version(NvrtcVersion version) {
  if (version >= kOldestNvrtc) return Status::ok();
  return unavailable("version " + version.to_string() + " is too old, " + kOldestNvrtc.to_string() +
                     " or later is needed");
}

std::string path_of_handle(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) {
    return {};
  }
  return map->l_name;
}

// False where path_if_open() of NVRTC need not be asked: with RTLD_NOLOAD glibc still looks through
// every folder for a library that is not open, some hundred system calls.
bool any_nvrtc_is_open() {
  const auto look = [](dl_phdr_info* info, size_t, void*) {
    return info->dlpi_name != nullptr && std::strstr(info->dlpi_name, "nvrtc") != nullptr ? 1 : 0;
  };
  return dl_iterate_phdr(look, nullptr) != 0;
}

// Where `name` is open in this process; "" where it is not. A library stays open for ever once
// pagejit has seen it.
std::string path_if_open(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) {
    loader_error();
    return {};
  }
  return path_of_handle(handle);
}

template <class Function>
bool resolve(void* handle, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) missing = name;
  return function != nullptr;
}

// Empty on success, else the name of the function that is missing.
std::string resolve_all(void* handle, NvrtcApi& api) {
  std::string missing;
  const bool complete =
      resolve(handle, "nvrtcGetErrorString", api.get_error_string, missing) &&
      resolve(handle, "nvrtcGetNumSupportedArchs", api.get_num_supported_archs, missing) &&
      resolve(handle, "nvrtcGetSupportedArchs", api.get_supported_archs, missing) &&
      resolve(handle, "nvrtcCreateProgram", api.create_program, missing) &&
      resolve(handle, "nvrtcDestroyProgram", api.destroy_program, missing) &&
      resolve(handle, "nvrtcCompileProgram", api.compile_program, missing) &&
      resolve(handle, "nvrtcGetCUBINSize", api.get_cubin_size, missing) &&
      resolve(handle, "nvrtcGetCUBIN", api.get_cubin, missing) &&
      resolve(handle, "nvrtcGetPTXSize", api.get_ptx_size, missing) &&
      resolve(handle, "nvrtcGetPTX", api.get_ptx, missing) &&
      resolve(handle, "nvrtcGetProgramLogSize", api.get_program_log_size, missing) &&
      resolve(handle, "nvrtcGetProgramLog", api.get_program_log, missing);
  std::string unused;
  resolve(handle, "nvrtcSetFlowCallback", api.set_flow_callback, unused);
  return complete ? std::string() : missing;
}

}  // namespace

std::string NvrtcVersion::to_string() const {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string NvrtcFiles::identity() const {
  return "nvrtc " + version.to_string() + " build-id " + library_build_id + " builtins " +
         builtins_build_id;
}

Result<NvrtcFiles> inspect_nvrtc(const std::string& path) {
  NvrtcFiles files;
  files.library = path;
  const std::string folder = folder_of(path);
  Result<std::string> library_id = read_elf_build_id(path);
  if (!library_id) return unavailable(library_id.status().message());
  files.library_build_id = *library_id;

  std::string builtins_folder = folder;
  std::optional<NvrtcVersion> version = find_builtins(folder, path);
  if (!version) {
    builtins_folder = folder_of(resolved_path(path));
    version = find_builtins(builtins_folder, path);
  }
  if (!version) return unavailable(path + ": no libnvrtc-builtins.so of its version beside it");
  files.version = *version;
  files.builtins = builtins_folder + "/" + builtins_name(*version);
  if (Status status = check_version(*version); !status) return status.with_context(path);

  Result<std::string> builtins_id = read_elf_build_id(files.builtins);
  if (!builtins_id) return unavailable(builtins_id.status().message());
  files.builtins_build_id = *builtins_id;
  return files;
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::open(const NvrtcFiles& files) {
  const std::string path = resolved_path(files.library);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return unavailable(loader_error());

  std::shared_ptr<NvrtcLibrary> library(new NvrtcLibrary);
  NvrtcApi& api = library->api_;
  std::string missing;
  NvrtcVersion version;
  if (!resolve(handle, "nvrtcVersion", api.version, missing)) {
    return unavailable(path + ": has no function " + missing);
  }
  if (api.version(&version.major, &version.minor) != kNvrtcSuccess) {
    return unavailable(path + ": nvrtcVersion failed");
  }
  if (Status status = check_version(version); !status) return status.with_context(path);
  missing = resolve_all(handle, api);
  if (!missing.empty()) return unavailable(path + ": has no function " + missing);

  // Found once more by the library's own word, which its name need not agree with. If builtins of
  // this name are open already, those are what NVRTC will use.
  library->files_ = files;
  library->files_.version = version;
  std::string& builtins = library->files_.builtins;
  builtins = path_if_open(builtins_name(version));
  if (builtins.empty()) {
    builtins = folder_of(files.builtins) + "/" + builtins_name(version);
    if (dlopen(resolved_path(builtins).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      return unavailable(path + ": its builtins cannot be opened: " + loader_error());
    }
  }
  Result<std::string> builtins_id = read_elf_build_id(builtins);
  if (!builtins_id) return unavailable(builtins_id.status().message());
  library->files_.builtins_build_id = *builtins_id;

  int count = 0;
  if (api.get_num_supported_archs(&count) != kNvrtcSuccess || count <= 0) {
    return unavailable(path + ": names no architecture that it compiles for");
  }
  library->supported_archs_.resize(static_cast<size_t>(count));
  if (api.get_supported_archs(library->supported_archs_.data()) != kNvrtcSuccess) {
    return unavailable(path + ": names no architecture that it compiles for");
  }
  std::sort(library->supported_archs_.begin(), library->supported_archs_.end());
  return std::shared_ptr<const NvrtcLibrary>(std::move(library));
}

bool NvrtcFinder::search(bool may_load, const std::function<bool(const NvrtcCandidate&)>& use,
                         std::vector<std::string>& searched) const {
  const bool ask_loader = search_.ask_loader && search_.explicit_path.empty();
  bool any = false;
  const auto show = [&](const std::string& path, const std::string& origin) {
    any = true;
    return use({path, resolved_path(path), origin});
  };
  if (ask_loader) {
    searched.push_back("libraries that are open in this process");
    for (const char* soname : kNvrtcSonames) {
      const std::string path = any_nvrtc_is_open() ? path_if_open(soname) : "";
      if (!path.empty() && show(path, "open in this process")) return true;
    }
  }
  const auto use_found = [&](const NvrtcCandidate& candidate) {
    any = true;
    return use(candidate);
  };
  if (search_nvrtc(search_, use_found, searched)) return true;
  // What only the loader can find (a RUNPATH, a loader other than glibc's) has to be loaded to
  // learn where it is.
  if (ask_loader && may_load && !any) {
    searched.push_back("libnvrtc.so.13 and libnvrtc.so.12 by the dynamic loader itself");
    for (const char* soname : kNvrtcSonames) {
      if (void* handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL)) {
        if (show(path_of_handle(handle), "found by the dynamic loader")) return true;
      } else {
        loader_error();
      }
    }
  }
  return false;
}

Result<NvrtcFiles> NvrtcFinder::find(bool may_load) {
  std::lock_guard lock(mutex_);
  return find_locked(may_load);
}

Result<NvrtcFiles> NvrtcFinder::find_locked(bool may_load) {
  if (library_ != nullptr) return library_->files();
  if (chosen_ != nullptr) return *chosen_;
  std::string reasons;
  std::vector<std::string> searched;
  std::set<std::string> tried;
  const auto use = [&](const NvrtcCandidate& candidate) {
    if (!tried.insert(candidate.resolved).second) return false;
    std::string reason;
    if (const auto dropped = dropped_.find(candidate.resolved); dropped != dropped_.end()) {
      reason = dropped->second;
    } else {
      Result<NvrtcFiles> files = inspect_nvrtc(candidate.path);
      if (files) {
        chosen_ = std::make_unique<const NvrtcFiles>(std::move(*files));
        return true;
      }
      reason = files.status().message();
    }
    reasons += (reasons.empty() ? "" : "; ") + reason + " (" + candidate.origin + ")";
    return false;
  };
  if (search(may_load, use, searched)) return *chosen_;
  std::string places;
  for (const std::string& place : searched) places += "looked at " + place + "\n";
  const std::string& explicit_path = search_.explicit_path;
  std::string message;
  if (!reasons.empty()) {
    message = "no usable NVRTC " + kOldestNvrtc.to_string() + " or later: " + reasons;
  } else if (!explicit_path.empty()) {
    message = "no NVRTC at the given path " + explicit_path +
              ": it must be a libnvrtc file or a folder with libnvrtc.so.13 or libnvrtc.so.12";
  } else {
    message =
        "no NVRTC found: install the package nvidia-cuda-nvrtc or a CUDA toolkit of version " +
        kOldestNvrtc.to_string() + " or later, or set PAGEJIT_NVRTC to its file or folder";
  }
  return Status(StatusCode::kCompilerUnavailable, std::move(message), std::move(places));
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcFinder::open() {
  std::lock_guard lock(mutex_);
  while (library_ == nullptr) {
    Result<NvrtcFiles> files = find_locked(/*may_load=*/true);
    if (!files) return files.status();
    Result<std::shared_ptr<const NvrtcLibrary>> library = NvrtcLibrary::open(*files);
    if (library) {
      library_ = *library;
    } else {
      dropped_[resolved_path(files->library)] = library.status().message();
      chosen_ = nullptr;
    }
  }
  return library_;
}

std::shared_ptr<const NvrtcLibrary> NvrtcFinder::opened() {
  std::lock_guard lock(mutex_);
  return library_;
}

}  // namespace pagejit::jit
