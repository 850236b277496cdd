#include "tools/cli/exit_code.h"

namespace pagejit::cli {

const char kExitCodeHelp[] =
    "Exit codes: 0 ok, 1 usage or input, 2 a kernel failed, 3 environment (NVRTC, driver, GPU),\n"
    "4 I/O, 5 verification failed, 6 interrupted, 7 some layer kinds are not supported yet.";

ExitCode exit_code_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return ExitCode::kOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported:
    case StatusCode::kNotFound:
      return ExitCode::kUsage;
    case StatusCode::kCompileFailed:
    case StatusCode::kWorkspace:
    case StatusCode::kInternal:
      return ExitCode::kKernelFailed;
    case StatusCode::kCompilerUnavailable:
    case StatusCode::kDriverUnavailable:
    case StatusCode::kDriverError:
    case StatusCode::kDenied:
      return ExitCode::kEnvironment;
    case StatusCode::kCacheError:
    case StatusCode::kDataCorrupt:
      return ExitCode::kIo;
    case StatusCode::kDeviceCheckFailed:
      return ExitCode::kVerification;
    case StatusCode::kCancelled:
      return ExitCode::kInterrupted;
  }
  return ExitCode::kKernelFailed;
}

ExitCode bundle_exit_code_of(const Status& status) {
  if (status.code() == StatusCode::kDataCorrupt) return ExitCode::kVerification;
  if (status.code() == StatusCode::kUnsupported) return ExitCode::kEnvironment;
  return exit_code_of(status);
}

ExitCode worse(ExitCode a, ExitCode b) {
  constexpr ExitCode kOrder[] = {
      ExitCode::kInterrupted,      ExitCode::kEnvironment, ExitCode::kKernelFailed,
      ExitCode::kVerification,     ExitCode::kIo,          ExitCode::kUsage,
      ExitCode::kUnsupportedLayers};
  for (const ExitCode code : kOrder) {
    if (a == code || b == code) return code;
  }
  return ExitCode::kOk;
}

}  // namespace pagejit::cli
