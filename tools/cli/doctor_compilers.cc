// NVRTC, the host's C++ compiler, and the libraries that are opened only where they are needed.
#include <dlfcn.h>

#include <iterator>
#include <string_view>

#include "runtime/jit/compiler.h"
#include "runtime/jit/nvrtc_compiler.h"
#include "runtime/jit/nvrtc_library.h"
#include "runtime/optional/curl_library.h"
#include "runtime/optional/sodium.h"
#include "tools/cli/doctor_checks.h"

namespace pagejit::cli {
namespace {

jit::NvrtcSearch search_of(const EngineOptions& options) {
  jit::NvrtcSearch search;  // as make_nvrtc_compiler()
  search.explicit_path = options.nvrtc_path;
  search.library_folder = jit::folder_of_this_library();
  return search;
}

std::vector<Target> served_targets(const jit::NvrtcLibrary& library) {
  std::vector<Target> targets;
  for (const int sm : library.supported_archs()) {
    for (const TargetVariant variant :
         {TargetVariant::kPlain, TargetVariant::kFamily, TargetVariant::kExact}) {
      const Target target{TargetKind::kCuda, sm, variant};
      if (jit::check_nvrtc_target(target, library.version(), library.supported_archs())) {
        targets.push_back(target);
      }
    }
  }
  return targets;
}

// A library that is opened only where `is_needed`, by the first of its names that the loader knows.
struct OptionalLibrary {
  const char* topic;
  std::vector<std::string> names;
  const char* version_function;  // const char* (*)()
  bool is_needed;
  const char* purpose;  // the option that needs it
  const char* advice;
};

void examine_library(const OptionalLibrary& wanted, DoctorReport& report) {
  for (const std::string& name : wanted.names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    const auto version =
        reinterpret_cast<const char* (*)()>(dlsym(library, wanted.version_function));
    std::string text = name;
    Dl_info info{};
    if (version != nullptr) {
      if (dladdr(reinterpret_cast<const void*>(version), &info) != 0) text = info.dli_fname;
      text += std::string(", version ") + version();
    }
    report.ok(wanted.topic, text, {{"found", true}, {"path", text.substr(0, text.find(','))}});
    return;  // left open: unloading it gains nothing here
  }
  const nlohmann::json values = {{"found", false}};
  if (wanted.is_needed) {
    report.problem(wanted.topic, std::string("not found, but ") + wanted.purpose + " needs it",
                   wanted.advice, values);
  } else {
    report.ok(wanted.topic, std::string("not found; only ") + wanted.purpose + " needs it", values);
  }
}

}  // namespace

FoundNvrtc examine_nvrtc(const EngineOptions& options, DoctorReport& report) {
  FoundNvrtc found;
  jit::NvrtcFinder finder(search_of(options));
  const Result<std::shared_ptr<const jit::NvrtcLibrary>> library = finder.open();
  if (!library) {
    report.problem("NVRTC", "none: " + library.status().message(),
                   "nothing can be compiled for a GPU without it; stored kernels can be used",
                   {{"found", false}});
    return found;
  }
  const jit::NvrtcFiles& files = (*library)->files();
  found.is_usable = true;
  found.major = files.version.major;
  found.targets = served_targets(**library);
  std::string text;
  std::vector<std::string> names;
  for (const Target& target : found.targets) {
    names.push_back(target.to_string());
    text += (text.empty() ? "" : " ") + names.back();
  }
  report.ok("NVRTC",
            "nvrtc " + files.version.to_string() + ", " + files.library + ", build-id " +
                files.library_build_id,
            {{"found", true},
             {"version", files.version.to_string()},
             {"path", files.library},
             {"build_id", files.library_build_id},
             {"builtins", files.builtins},
             {"builtins_build_id", files.builtins_build_id},
             {"targets", names}});
  report.ok("NVRTC builtins", files.builtins + ", build-id " + files.builtins_build_id);
  report.ok("NVRTC targets", text);
  return found;
}

void examine_host_compiler(const EngineOptions& options, DoctorReport& report) {
  const std::shared_ptr<Compiler> compiler =
      make_host_compiler(options.host_compiler, options.host_build);
  const Result<std::string> identity = compiler->identity();
  if (identity) {
    const std::string path = compiler->recipe(Target::host()).program;
    report.ok("C++ compiler", path + ", " + *identity,
              {{"found", true}, {"path", path}, {"identity", *identity}});
  } else {
    report.warning("C++ compiler", "none: " + identity.status().message(),
                   "only kernels for the CPU emulator need one", {{"found", false}});
  }
}

void examine_optional_libraries(const EngineOptions& options, DoctorReport& report) {
  const bool needs_sodium = !options.trusted_keys.empty() || options.require_signed;
  examine_library({.topic = "libcurl",
                   .names = CurlLibrary::default_files(),
                   .version_function = "curl_version",
                   .is_needed = !options.remote.empty(),
                   .purpose = "EngineOptions::remote (PAGEJIT_REMOTE)",
                   .advice = "install it (Debian: libcurl4); until then the remote is not asked"},
                  report);
  examine_library(
      {.topic = "libsodium",
       .names = sodium_candidates(),
       .version_function = "sodium_version_string",
       .is_needed = needs_sodium,
       .purpose = "EngineOptions::trusted_keys (PAGEJIT_TRUSTED_KEYS)",
       .advice = "install it (Debian: libsodium23); until then no signature can be checked"},
      report);
}

}  // namespace pagejit::cli
