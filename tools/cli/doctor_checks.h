// What `pagejit doctor` looks at, part by part. Each adds its findings to the report; none fails,
// and none changes anything but the cache directory, which is made where it does not exist.
// Thread-safety: one thread; examine_cache() forks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/file_system.h"
#include "cache/http_transport.h"
#include "pagejit/options.h"
#include "tools/cli/doctor_report.h"

namespace pagejit::cli {

// The NVRTC that was found: opened, with the targets it compiles for.
struct FoundNvrtc {
  bool is_usable = false;
  int major = 0;
  std::vector<Target> targets;
};

// Names of variables that begin with PAGEJIT_: those that are set, and those that nothing reads.
// environment: "NAME=value" each.
void examine_variables(const std::vector<std::string>& environment, DoctorReport& report);
// The variables that the library and its tools read.
std::vector<std::string> known_variables();

FoundNvrtc examine_nvrtc(const EngineOptions& options, DoctorReport& report);
void examine_host_compiler(const EngineOptions& options, DoctorReport& report);
// The CUDA driver, its GPUs and what is compiled for each; the emulator. Returns the GPUs' compute
// capabilities, major * 10 + minor, in the order of their ordinals.
std::vector<int> examine_devices(const EngineOptions& options, const FoundNvrtc& nvrtc,
                                 DoctorReport& report);
// Libraries that are opened only where an option asks for what they do.
void examine_optional_libraries(const EngineOptions& options, DoctorReport& report);
// The cache directory: which, whose, on what; whether it can be written and locked. files: for
// tests; null = the real ones.
void examine_cache(const EngineOptions& options, DoctorReport& report,
                   cache::FileSystem* files = nullptr);
// The other places that kernels are looked for in. sms: of examine_devices().
void examine_bundles(const EngineOptions& options, const std::vector<int>& sms,
                     DoctorReport& report);
void examine_read_only_dirs(const EngineOptions& options, DoctorReport& report);
// Asks it once. transport: for tests; null = libcurl.
void examine_remote(const EngineOptions& options, DoctorReport& report,
                    std::shared_ptr<cache::HttpTransport> transport = nullptr);

}  // namespace pagejit::cli
