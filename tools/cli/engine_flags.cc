#include "tools/cli/engine_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "runtime/options_reader.h"
#include "tools/cli/word_checks.h"

namespace pagejit::cli {
namespace {

constexpr int kMaxThreads = 256;  // as PAGEJIT_COMPILE_THREADS

}  // namespace

void add_engine_flags(CLI::App& command, EngineFlags* flags, bool with_driver) {
  command.add_option("--cache-dir", flags->cache_dir, "Where kernels are kept (PAGEJIT_CACHE_DIR)")
      ->type_name("DIR")
      ->group("How");
  command
      .add_option("--nvrtc", flags->nvrtc,
                  "libnvrtc.so, or the folder that holds it (PAGEJIT_NVRTC)")
      ->type_name("PATH")
      ->group("How");
  command
      .add_option("-j,--jobs", flags->threads,
                  "Kernels compiled at once (default: one per processor)")
      ->type_name("N")
      ->group("How");
  if (!with_driver) return;
  command
      .add_option("--driver", flags->driver,
                  "\"cuda\", \"emulator\" (the CPU), or a driver library (PAGEJIT_DRIVER)")
      ->type_name("DRIVER")
      ->check(driver_word())
      ->group("How");
}

Result<EngineOptions> make_engine_options(const EngineFlags& flags,
                                          std::function<void(const std::string&)> on_log) {
  EngineOptions options;
  const std::vector<Status> failures = read_engine_options(flags, std::move(on_log), &options);
  if (!failures.empty()) return failures.front();
  return options;
}

std::vector<Status> read_engine_options(const EngineFlags& flags,
                                        std::function<void(const std::string&)> on_log,
                                        EngineOptions* read) {
  std::vector<Status> failures = read_environment(read);
  EngineOptions& options = *read;
  if (flags.cache_dir) options.cache_dir = *flags.cache_dir;
  if (flags.nvrtc) options.nvrtc_path = *flags.nvrtc;
  if (flags.driver) options.driver = *flags.driver == "cuda" ? "" : *flags.driver;
  if (flags.threads) {
    if (*flags.threads < 1 || *flags.threads > kMaxThreads) {
      failures.emplace_back(StatusCode::kInvalidArgument,
                            "--jobs " + std::to_string(*flags.threads) + ": must be in [1, " +
                                std::to_string(kMaxThreads) + "]");
    } else {
      options.compile_threads = *flags.threads;
    }
  }
  options.log_callback = [on_log = std::move(on_log)](LogLevel level, std::string_view line) {
    if (level < LogLevel::kError) on_log(std::string(line));
  };
  return failures;
}

}  // namespace pagejit::cli
