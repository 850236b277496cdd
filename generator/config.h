// What the generator's two steps give: a configuration, which is a spec with the constants of its
// kernel, and a source. Each family of kernels has its own spec and configuration; AnySpec and
// AnyConfig hold one of any family, for all that handles them alike. Thread-safety: plain values.
#pragma once

#include <string>
#include <variant>

#include "pagejit/cache_ops.h"
#include "pagejit/cache_write.h"
#include "pagejit/indexer.h"
#include "pagejit/merge_states.h"
#include "pagejit/mla_cache.h"
#include "pagejit/spec.h"
#include "pagejit/target.h"
#include "templates/shared/attention_params.h"
#include "templates/shared/cache_ops_params.h"
#include "templates/shared/cache_write_params.h"
#include "templates/shared/indexer_params.h"
#include "templates/shared/merge_states_params.h"
#include "templates/shared/mla_cache_params.h"

namespace pagejit {

using AttentionConfig = pagejit_shared::AttentionConfig;
using AttentionParams = pagejit_shared::AttentionParams;

// How an attention spec is built for a target: the spec, the target, and the constants of the
// kernel.
struct KernelConfig {
  KernelSpec spec;
  Target target;
  AttentionConfig attention;

  int num_warps() const { return attention.token_groups * attention.row_warps; }
  int threads_per_cta() const { return num_warps() * 32; }
  int shared_bytes() const { return attention.shared_bytes; }  // dynamic, per CTA
  // Tokens of one stage of the whole CTA.
  int tile_tokens() const { return attention.token_groups * attention.group_tokens; }
};

// The same for the other families.
template <class Spec, class Constants>
struct SimpleConfig {
  Spec spec;
  Target target;
  Constants constants;

  int threads_per_cta() const { return constants.num_threads; }
  int shared_bytes() const {
    if constexpr (requires { constants.shared_bytes; }) return constants.shared_bytes;
    return 0;
  }
};
using MergeStatesConfig = SimpleConfig<MergeStatesSpec, pagejit_shared::MergeStatesConfig>;
using CacheWriteConfig = SimpleConfig<CacheWriteSpec, pagejit_shared::CacheWriteConfig>;
using MlaCacheWriteConfig = SimpleConfig<MlaCacheWriteSpec, pagejit_shared::MlaCacheWriteConfig>;
using CopyBlocksConfig = SimpleConfig<CopyBlocksSpec, pagejit_shared::CopyBlocksConfig>;
using GatherCacheConfig = SimpleConfig<GatherCacheSpec, pagejit_shared::GatherCacheConfig>;
using ConvertFloat8Config = SimpleConfig<ConvertFloat8Spec, pagejit_shared::ConvertFloat8Config>;
using IndexKeyWriteConfig = SimpleConfig<IndexKeyWriteSpec, pagejit_shared::IndexKeyWriteConfig>;
using IndexKeyGatherConfig = SimpleConfig<IndexKeyGatherSpec, pagejit_shared::IndexKeyGatherConfig>;
using TopKConfig = SimpleConfig<TopKSpec, pagejit_shared::TopKConfig>;
using IndexLogitsConfig = SimpleConfig<IndexLogitsSpec, pagejit_shared::IndexLogitsConfig>;

// Every family has spec, target, threads_per_cta() and shared_bytes().
using AnySpec = std::variant<KernelSpec, MergeStatesSpec, CacheWriteSpec, CopyBlocksSpec,
                             GatherCacheSpec, ConvertFloat8Spec, MlaCacheWriteSpec,
                             IndexKeyWriteSpec, IndexKeyGatherSpec, TopKSpec, IndexLogitsSpec>;
using AnyConfig =
    std::variant<KernelConfig, MergeStatesConfig, CacheWriteConfig, CopyBlocksConfig,
                 GatherCacheConfig, ConvertFloat8Config, MlaCacheWriteConfig, IndexKeyWriteConfig,
                 IndexKeyGatherConfig, TopKConfig, IndexLogitsConfig>;

// One self-contained translation unit.
struct KernelSource {
  std::string text;         // no #include; CUDA C++ for a CUDA target, C++20 for the host
  std::string kernel_name;  // extern "C" symbol, e.g. pagejit_decode_bf16_d128_b16_g4
  Target target;
  AnyConfig config;
};

}  // namespace pagejit
