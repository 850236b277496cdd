// The flags that say how kernels are made and run: cache directory, NVRTC, driver, threads. They
// win over the PAGEJIT_* variables, which win over the defaults. Thread-safety: plain values and
// free functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pagejit/engine.h"

namespace CLI {
class App;
}

namespace pagejit::cli {

struct EngineFlags {
  std::optional<std::string> cache_dir;
  std::optional<std::string> nvrtc;
  std::optional<std::string> driver;
  std::optional<int> threads;
};

// `with_driver`: --driver too, for commands that launch.
void add_engine_flags(CLI::App& command, EngineFlags* flags, bool with_driver);

// kInvalidArgument for a malformed variable or a number of threads out of range.
// Lines of the engine's log go to `on_log`, but for errors: these reach the caller as a Status.
Result<EngineOptions> make_engine_options(const EngineFlags& flags,
                                          std::function<void(const std::string&)> on_log);

// The same with all that can be read, and why the rest cannot: a sentence for each variable and
// flag that is malformed, whose field keeps its default.
std::vector<Status> read_engine_options(const EngineFlags& flags,
                                        std::function<void(const std::string&)> on_log,
                                        EngineOptions* options);

}  // namespace pagejit::cli
