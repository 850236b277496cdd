// The exit codes of the pagejit command. Stable: scripts switch on them.
// Thread-safety: constant data and free functions.
#pragma once

#include <cstdint>

#include "pagejit/status.h"

namespace pagejit::cli {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 1,         // a flag, or what a config.json, a manifest or a spec says, is not legal
  kKernelFailed = 2,  // a kernel could not be compiled
  kEnvironment = 3,   // no NVRTC, no driver, no GPU, or one too old
  kIo = 4,            // a file that is named (absent, a folder, no permission, a full disk) or the
                      // cache directory could not be read or written
  kVerification = 5,  // a kernel's results are wrong, or a kernel is missing or not reproducible
  kInterrupted = 6,   // what was done until then is kept
  kUnsupportedLayers =
      7,  // some layer kinds of a model have no kernel in this version; the others were served
};

// For the footer of --help.
extern const char kExitCodeHelp[];

// The code for a failure that ends a command.
ExitCode exit_code_of(const Status& status);

// The same for work on bundles: what is wrong with a bundle's bytes or signature is a failed
// verification, and a missing libsodium is the machine's fault.
ExitCode bundle_exit_code_of(const Status& status);

// Of two reasons the one to report: an interrupt, then environment, kernels, verification, I/O,
// usage, layer kinds.
ExitCode worse(ExitCode a, ExitCode b);

}  // namespace pagejit::cli
