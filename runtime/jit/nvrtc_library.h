// NvrtcLibrary: NVRTC, opened at run time, never linked and never closed. NvrtcFiles says which
// files a library is without loading them; NvrtcFinder chooses among the candidates of
// nvrtc_search.h. Thread-safety: NvrtcLibrary is immutable; NvrtcFinder may be used from several
// threads.
//
// The declarations follow "NVRTC, User Guide, section 3" of the CUDA 13.0 documentation; the
// functions are unchanged since they came. NVRTC's own header is not needed to build.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pagejit/status.h"
#include "runtime/jit/nvrtc_search.h"

namespace pagejit::jit {

struct NvrtcVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const NvrtcVersion&) const = default;
  std::string to_string() const;  // "13.0"
};

// The oldest that is served.
inline constexpr NvrtcVersion kOldestNvrtc{12, 4};
// From here on a compile opens libcuda and initialises it unless --no-cache is given, which older
// ones do not know; and the family variants (sm_100f) exist.
inline constexpr NvrtcVersion kNvrtcWithCache{12, 9};
inline constexpr NvrtcVersion kNvrtcWithFamilies{12, 9};

// A libnvrtc and the builtins it needs, as files.
struct NvrtcFiles {
  std::string library;
  std::string builtins;
  NvrtcVersion version;  // by the name of the builtins
  std::string library_build_id;
  std::string builtins_build_id;

  // "nvrtc 13.0 build-id <hex> builtins <hex>": equal for equal compilers, wherever they lie.
  std::string identity() const;
};

// Reads names and ELF headers only. kCompilerUnavailable with the reason: no ELF file, for another
// processor, no build-id, no builtins beside it, older than 12.4.
Result<NvrtcFiles> inspect_nvrtc(const std::string& path);

// nvrtcResult. Those that are told apart.
enum NvrtcResult : int {
  kNvrtcSuccess = 0,
  kNvrtcErrorInvalidOption = 5,
  kNvrtcErrorCompilation = 6,
  kNvrtcErrorCancelled = 16,
};

using NvrtcProgram = struct NvrtcProgramState*;  // nvrtcProgram; opaque

struct NvrtcApi {
  const char* (*get_error_string)(int result) = nullptr;
  int (*version)(int* major, int* minor) = nullptr;
  int (*get_num_supported_archs)(int* count) = nullptr;
  int (*get_supported_archs)(int* archs) = nullptr;
  int (*create_program)(NvrtcProgram* program, const char* source, const char* name,
                        int num_headers, const char* const* headers,
                        const char* const* include_names) = nullptr;
  int (*destroy_program)(NvrtcProgram* program) = nullptr;
  int (*compile_program)(NvrtcProgram program, int num_options,
                         const char* const* options) = nullptr;
  int (*get_cubin_size)(NvrtcProgram program, size_t* bytes) = nullptr;
  int (*get_cubin)(NvrtcProgram program, char* cubin) = nullptr;
  int (*get_ptx_size)(NvrtcProgram program, size_t* bytes) = nullptr;  // the closing null included
  int (*get_ptx)(NvrtcProgram program, char* ptx) = nullptr;
  int (*get_program_log_size)(NvrtcProgram program, size_t* bytes) = nullptr;
  int (*get_program_log)(NvrtcProgram program, char* log) = nullptr;
  // Optional (12.8): has `callback(payload, nullptr)` called from time to time, on any thread,
  // while a program is compiled; the compile ends with kNvrtcErrorCancelled once that returns 1.
  int (*set_flow_callback)(NvrtcProgram program, int (*callback)(void* payload, void* reserved),
                           void* payload) = nullptr;
};

class NvrtcLibrary {
 public:
  // Opens the builtins and the library by their absolute paths: the library would look for its
  // builtins only on the loader's search path. kCompilerUnavailable with the reason.
  static Result<std::shared_ptr<const NvrtcLibrary>> open(const NvrtcFiles& files);

  const NvrtcApi& api() const { return api_; }
  // What is really open; differs from what open() was given where the version does.
  const NvrtcFiles& files() const { return files_; }
  NvrtcVersion version() const { return files_.version; }
  // Compute capabilities as major * 10 + minor, ascending.
  const std::vector<int>& supported_archs() const { return supported_archs_; }

 private:
  NvrtcLibrary() = default;
  NvrtcApi api_;
  NvrtcFiles files_;
  std::vector<int> supported_archs_;
};

class NvrtcFinder {
 public:
  explicit NvrtcFinder(NvrtcSearch search) : search_(std::move(search)) {}

  // The files of the best candidate, chosen once. With may_load, a library that no path leads to is
  // loaded by its SONAME to learn where it is; without, nothing is ever loaded.
  // kCompilerUnavailable names each candidate and why it was refused; detail() lists the places
  // that were looked at.
  Result<NvrtcFiles> find(bool may_load);

  // Opens what find() chose, once. A candidate that cannot be opened is dropped for good, and the
  // next one is chosen: then find() answers differently from then on.
  Result<std::shared_ptr<const NvrtcLibrary>> open();
  // What open() has opened; null before.
  std::shared_ptr<const NvrtcLibrary> opened();

 private:
  Result<NvrtcFiles> find_locked(bool may_load);
  // As search_nvrtc(), with what the loader knows before and after.
  bool search(bool may_load, const std::function<bool(const NvrtcCandidate&)>& use,
              std::vector<std::string>& searched) const;

  const NvrtcSearch search_;
  std::mutex mutex_;
  std::unique_ptr<const NvrtcFiles> chosen_;
  std::shared_ptr<const NvrtcLibrary> library_;
  std::map<std::string, std::string> dropped_;  // resolved path -> reason
};

}  // namespace pagejit::jit
