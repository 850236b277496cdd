
#include "pagejit/options.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/format.h"
#include "runtime/jit/environment.h"
#include "runtime/options_reader.h"

namespace pagejit {
namespace {

// Far above any use; they catch a slip of the keyboard.
constexpr int kMaxCompileThreads = 256;
constexpr uint64_t kMaxCacheMib = 1 << 24;  // 16 TiB

// Null where the variable is unset or empty: both mean the default.
const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Status malformed(const char* name, std::string_view value, std::string_view legal) {
  return Status(StatusCode::kInvalidArgument, format("{}={}: must be {}", name, value, legal));
}

template <class Value, size_t kCount>
Status read_choice(const char* name, const std::pair<std::string_view, Value> (&choices)[kCount],
                   Value& field) {
  const char* text = variable(name);
  if (text == nullptr) return {};
  std::string legal;
  for (const auto& [word, value] : choices) {
    if (word == text) {
      field = value;
      return {};
    }
    legal += format("{}{}", legal.empty() ? "" : ", ", word);
  }
  return malformed(name, text, "one of " + legal);
}

void read_text(const char* name, std::string& field) {
  if (const char* text = variable(name)) field = text;
}

// Empty parts are left out, as in PATH-like variables that were put together by scripts.
void read_list(const char* name, std::vector<std::string>& field) {
  if (const char* text = variable(name)) field = jit::split_path_list(text);
}

template <class Number>
Status read_number(const char* name, Number max, Number& field) {
  const char* value = variable(name);
  if (value == nullptr) return {};
  const std::string_view text = value;
  Number number = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0 || number > max) {
    return malformed(name, text, format("a number in [0, {}]", max));
  }
  field = number;
  return {};
}

constexpr std::pair<std::string_view, bool> kSwitch[] = {{"0", false}, {"1", true}};
constexpr std::pair<std::string_view, bool> kOnOff[] = {{"on", true}, {"off", false}};
constexpr std::pair<std::string_view, HostBuild> kHostBuilds[] = {
    {"plain", HostBuild::kPlain},
    {"checked", HostBuild::kChecked},
    {"asan", HostBuild::kAddressSanitizer}};
constexpr std::pair<std::string_view, JitPolicy> kJitPolicies[] = {{"on", JitPolicy::kOn},
                                                                   {"warn", JitPolicy::kWarn},
                                                                   {"error", JitPolicy::kError},
                                                                   {"off", JitPolicy::kOff}};
constexpr std::pair<std::string_view, RemoteLayout> kLayouts[] = {
    {"flat", RemoteLayout::kFlat},
    {"subdirs", RemoteLayout::kSubdirectories},
    {"bazel", RemoteLayout::kBazel}};
constexpr std::pair<std::string_view, LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},
                                                                {"info", LogLevel::kInfo},
                                                                {"warning", LogLevel::kWarning},
                                                                {"error", LogLevel::kError},
                                                                {"off", LogLevel::kOff}};

}  // namespace

std::vector<Status> read_environment(EngineOptions* read) {
  EngineOptions& options = *read;
  read_text("PAGEJIT_DRIVER", options.driver);
  read_text("PAGEJIT_EMULATOR", options.emulator_path);
  read_text("PAGEJIT_NVRTC", options.nvrtc_path);
  read_text("PAGEJIT_HOST_CXX", options.host_compiler);
  read_text("PAGEJIT_CACHE_DIR", options.cache_dir);
  read_list("PAGEJIT_BUNDLES", options.bundles);
  read_list("PAGEJIT_READ_ONLY_DIRS", options.read_only_dirs);
  read_list("PAGEJIT_TRUSTED_KEYS", options.trusted_keys);
  read_text("PAGEJIT_REMOTE", options.remote);
  read_text("PAGEJIT_RECORD", options.record_path);
  read_text("PAGEJIT_DUMP", options.dump_dir);
  read_text("PAGEJIT_STATS", options.stats_path);
  std::vector<Status> failures;
  const auto check = [&](Status status) {
    if (!status) failures.push_back(std::move(status));
  };
  check(read_choice("PAGEJIT_ALLOW_EMULATOR", kSwitch, options.allow_emulator));
  check(read_choice("PAGEJIT_HOST_BUILD", kHostBuilds, options.host_build));
  check(read_choice("PAGEJIT_CACHE", kOnOff, options.disk_cache));
  check(read_choice("PAGEJIT_JIT", kJitPolicies, options.jit));
  check(read_choice("PAGEJIT_LOG", kLogLevels, options.log_level));
  check(read_number("PAGEJIT_COMPILE_THREADS", kMaxCompileThreads, options.compile_threads));
  uint64_t cache_max_mib = options.cache_max_bytes >> 20;
  check(read_number("PAGEJIT_CACHE_MAX_MIB", kMaxCacheMib, cache_max_mib));
  options.cache_max_bytes = cache_max_mib << 20;
  check(read_choice("PAGEJIT_REMOTE_LAYOUT", kLayouts, options.remote_layout));
  check(read_choice("PAGEJIT_REMOTE_WRITE", kSwitch, options.remote_write));
  check(read_choice("PAGEJIT_REQUIRE_SIGNED", kSwitch, options.require_signed));
  check(read_choice("PAGEJIT_TUNED", kOnOff, options.tuned));
  return failures;
}

Result<EngineOptions> EngineOptions::from_environment() {
  try {
    EngineOptions options;
    const std::vector<Status> failures = read_environment(&options);
    if (!failures.empty()) return failures.front();
    return options;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kInternal, "out of memory");
  }
}

}  // namespace pagejit
