// Target: what a kernel is compiled for. A CUDA target is a compute capability with an optional
// variant letter; the target "host" is ordinary C++ for the CPU emulator. Thread-safety: plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pagejit/export.h"
#include "pagejit/status.h"

namespace pagejit {

enum class TargetKind : uint8_t { kCuda = 0, kHost = 1 };

// Which GPUs a cubin runs on: kPlain the same major with an equal or higher minor, kFamily ('f')
// the GPUs of one family, kExact ('a') that compute capability only. kPtx is no cubin but PTX,
// which the driver compiles when it is loaded: for GPUs of that compute capability and all later
// ones.
enum class TargetVariant : uint8_t { kPlain = 0, kFamily = 1, kExact = 2, kPtx = 3 };

struct PAGEJIT_EXPORT Target {
  TargetKind kind = TargetKind::kCuda;
  // Compute capability as major * 10 + minor (80, 90, 120). For kHost: the architecture whose tile
  // configuration the host kernel takes, so that every architecture's kernel can be run on the
  // emulator.
  int sm = 90;
  TargetVariant variant = TargetVariant::kPlain;

  static Target host(int sm_of_config = 90) {
    return {TargetKind::kHost, sm_of_config, TargetVariant::kPlain};
  }
  bool is_host() const { return kind == TargetKind::kHost; }
  bool operator==(const Target&) const = default;

  // "sm_90a", "sm_100f", "sm_80", "compute_80" (PTX); "host" (configured as sm_90), "host_80".
  std::string to_string() const;
};

// Accepts "sm_90a", "compute_90", "90a", "compute capability" style "9.0", "host", "host_80".
// kInvalidArgument for what is no target at all; whether a target is served is supports()'s answer
// and NVRTC's.
PAGEJIT_EXPORT Result<Target> parse_target(std::string_view text);

}  // namespace pagejit
