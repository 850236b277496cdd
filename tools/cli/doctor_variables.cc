// The PAGEJIT_* variables: which are set, and which look like a slip of the keyboard.
#include <algorithm>
#include <string_view>

#include "cache/remote_url.h"
#include "tools/cli/doctor_checks.h"
#include "tools/models/config_reader.h"
#include "tools/models/near_words.h"

namespace pagejit::cli {
namespace {

constexpr std::string_view kPrefix = "PAGEJIT_";

constexpr std::string_view kKnown[] = {
    // The engine's (pagejit/options.h).
    "PAGEJIT_ALLOW_EMULATOR", "PAGEJIT_BUNDLES", "PAGEJIT_CACHE", "PAGEJIT_CACHE_DIR",
    "PAGEJIT_CACHE_MAX_MIB", "PAGEJIT_COMPILE_THREADS", "PAGEJIT_DRIVER", "PAGEJIT_DUMP",
    "PAGEJIT_EMULATOR", "PAGEJIT_HOST_BUILD", "PAGEJIT_HOST_CXX", "PAGEJIT_JIT", "PAGEJIT_LOG",
    "PAGEJIT_NVRTC", "PAGEJIT_READ_ONLY_DIRS", "PAGEJIT_RECORD", "PAGEJIT_REMOTE",
    "PAGEJIT_REMOTE_LAYOUT", "PAGEJIT_REMOTE_WRITE", "PAGEJIT_REQUIRE_SIGNED", "PAGEJIT_STATS",
    "PAGEJIT_TRUSTED_KEYS", "PAGEJIT_TUNED",
    // The emulator's (runtime/emulator/README.md).
    "PAGEJIT_EMULATOR_COMPLETION", "PAGEJIT_EMULATOR_ORDER", "PAGEJIT_EMULATOR_REPORT",
    "PAGEJIT_EMULATOR_RESIDENT", "PAGEJIT_EMULATOR_SEED", "PAGEJIT_EMULATOR_SM",
    "PAGEJIT_EMULATOR_WATCHDOG_S",
    // The scripts' and the tests'.
    "PAGEJIT_CUDA_WHEEL", "PAGEJIT_TEST_REQUIRE_COMPILERS", "PAGEJIT_UPDATE_GOLDEN"};

}  // namespace

std::vector<std::string> known_variables() { return {std::begin(kKnown), std::end(kKnown)}; }

void examine_variables(const std::vector<std::string>& environment, DoctorReport& report) {
  std::vector<std::string> sorted = environment;
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& entry : sorted) {
    if (!entry.starts_with(kPrefix)) continue;
    const std::string name = entry.substr(0, entry.find('='));
    // A URL may hold a password, also under a name that is misspelt.
    const std::string value = models::printable(
        cache::without_credentials(entry.substr(std::min(name.size() + 1, entry.size()))));
    const nlohmann::json values = {{"name", name}, {"value", value}};
    if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown)) {
      report.ok("variable " + name, value.empty() ? "empty, as if it were not set" : value, values);
      continue;
    }
    const std::string meant = models::nearest_word(name, known_variables());
    report.warning("variable " + name, "nothing reads it",
                   meant.empty() ? "remove it; EngineOptions (pagejit/options.h) names those that "
                                   "are read"
                                 : "did you mean " + meant + "?",
                   values);
  }
}

}  // namespace pagejit::cli
