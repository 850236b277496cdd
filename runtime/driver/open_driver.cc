#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "runtime/driver/driver.h"
#include "runtime/format.h"
#include "runtime/logger.h"

namespace pagejit {
namespace {

constexpr const char* kEmulatorFile = "libpagejit-emulator.so";
// The second is where WSL 2 keeps the driver, outside of the linker's path.
constexpr const char* kDriverCandidates[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

// The folder of the file that holds this code: libpagejit.so, or the program it is linked into.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&open_driver), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  if (error) file = std::filesystem::canonical("/proc/self/exe", error);
  return error ? std::filesystem::path() : file.parent_path();
}

Result<std::shared_ptr<const Driver>> open_emulator(const std::string& explicit_path) {
  if (!explicit_path.empty()) return Driver::open(explicit_path);
  const std::filesystem::path folder = own_folder();
  // Beside the library; or, for a program that holds the library's code, in its prefix's folder of
  // libraries, whose name depends on the distribution.
  const std::filesystem::path candidates[] = {
      folder / kEmulatorFile, folder.parent_path() / "lib" / kEmulatorFile,
      folder.parent_path() / "lib64" / kEmulatorFile,
      folder.parent_path() / "lib" / PAGEJIT_LIBRARY_ARCHITECTURE / kEmulatorFile};
  std::string tried;
  for (const std::filesystem::path& candidate : candidates) {
    std::error_code error;
    if (std::filesystem::exists(candidate, error)) return Driver::open(candidate.string());
    tried += (tried.empty() ? "" : ", ") + candidate.string();
  }
  return Status(StatusCode::kDriverUnavailable,
                format("the emulator was not found (tried {}); set PAGEJIT_EMULATOR", tried));
}

}  // namespace

Result<std::shared_ptr<const Driver>> open_driver(const DriverRequest& request,
                                                  const Logger& logger) {
  if (request.driver == "emulator") return open_emulator(request.emulator_path);
  if (!request.driver.empty()) return Driver::open(request.driver);

  std::string tried;
  FailureFacts facts;  // of the first that answered
  for (const char* candidate : kDriverCandidates) {
    Result<std::shared_ptr<const Driver>> driver = Driver::open(candidate);
    if (driver) return driver;
    if (facts.cuda_result == 0) facts.cuda_result = driver.status().facts().cuda_result;
    tried += (tried.empty() ? "" : "; ") + driver.status().message();
  }
  Status missing(StatusCode::kDriverUnavailable, "no CUDA driver works: " + tried, {}, facts);
  if (!request.allow_emulator) return missing;

  Result<std::shared_ptr<const Driver>> emulator = open_emulator(request.emulator_path);
  if (!emulator) {
    return Status(StatusCode::kDriverUnavailable,
                  missing.message() + "; " + emulator.status().message(), {}, facts);
  }
  logger.warning(format("no CUDA driver works; kernels run on the CPU emulator {} ({})",
                        emulator.value()->path(), tried));
  return emulator;
}

}  // namespace pagejit
