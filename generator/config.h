// KernelConfig and KernelSource: the results of the generator's two steps.
// Thread-safety: plain values.
#pragma once

#include <string>

#include "pagejit/spec.h"
#include "pagejit/target.h"
#include "templates/shared/attention_params.h"

namespace pagejit {

using AttentionConfig = pagejit_shared::AttentionConfig;
using AttentionParams = pagejit_shared::AttentionParams;

// How a spec is built for a target: the spec, the target, and the constants of the kernel.
struct KernelConfig {
  KernelSpec spec;
  Target target;
  AttentionConfig attention;

  int num_warps() const { return attention.token_groups * attention.row_warps; }
  int threads_per_cta() const { return num_warps() * 32; }
  // Tokens of one stage of the whole CTA.
  int tile_tokens() const { return attention.token_groups * attention.group_tokens; }
};

// One self-contained translation unit.
struct KernelSource {
  std::string text;         // no #include; CUDA C++ for a CUDA target, C++20 for the host
  std::string kernel_name;  // extern "C" symbol, e.g. pagejit_decode_bf16_d128_b16_g4
  Target target;
  KernelConfig config;
};

}  // namespace pagejit
