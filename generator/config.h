// KernelConfig and KernelSource: the results of the generator's two steps.
// Thread-safety: plain values.
#pragma once

#include <string>

#include "pagejit/spec.h"
#include "pagejit/target.h"
#include "templates/shared/decode_params.h"

namespace pagejit {

using DecodeConfig = pagejit_shared::DecodeConfig;
using DecodeParams = pagejit_shared::DecodeParams;

// How a spec is built for a target: the spec, the target, and the constants of the kernel.
struct KernelConfig {
  KernelSpec spec;
  Target target;
  DecodeConfig decode;

  int num_warps() const { return decode.token_groups * decode.head_warps; }
  int threads_per_cta() const { return num_warps() * 32; }
  // Tokens of one stage of the whole CTA.
  int tile_tokens() const { return decode.token_groups * decode.group_tokens; }
};

// One self-contained translation unit.
struct KernelSource {
  std::string text;         // no #include; CUDA C++ for a CUDA target, C++20 for the host
  std::string kernel_name;  // extern "C" symbol, e.g. pagejit_decode_bf16_d128_b16_g4
  Target target;
  KernelConfig config;
};

}  // namespace pagejit
