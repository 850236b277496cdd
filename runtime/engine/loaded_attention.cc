#include "runtime/engine/loaded_attention.h"

#include <algorithm>
#include <utility>

namespace pagejit {
namespace {

// Memory latency under load; with the bytes a CTA has in flight it bounds what one CTA can stream.
constexpr double kLatencyNs = 1000;

}  // namespace

LoadedAttention::LoadedAttention(LoadedKernelParts loaded_parts, CUdevice on_device)
    : LoadedKernel(std::move(loaded_parts), on_device),
      config(std::get<KernelConfig>(parts.config)) {}

void LoadedAttention::describe_device(const DeviceInfo& info, int ctas_per_sm) {
  const int element_bytes = data_type_bytes(config.spec.kv_dtype);
  split.num_sms = std::max(1, info.num_sms);
  split.ctas_per_sm = ctas_per_sm;
  if (info.bytes_per_ns > 0) split.sm_bytes_per_ns = info.bytes_per_ns / split.num_sms;
  split.rows = pagejit_shared::partial_rows(config.attention);
  split.head_size_v = value_head_size(config.spec);
  split.tile_tokens = config.tile_tokens();
  if (config.spec.batch_invariant) split.fixed_split_tokens = pagejit_shared::kFixedSplitTokens;
  split.token_bytes = (config.spec.head_size + split.head_size_v) * element_bytes;
  // All stages but the one being computed on are in flight.
  const int stages = std::max(1, config.attention.num_stages - 1);
  split.cta_bytes_per_ns =
      static_cast<double>(stages) * split.tile_tokens * split.token_bytes / kLatencyNs;
}

size_t LoadedAttention::workspace_bytes(int num_seqs, int num_kv_heads, int num_splits) const {
  if (num_splits <= 1) {
    return config.spec.debug ? static_cast<size_t>(pagejit_shared::kPartialsOffset) : 0;
  }
  return static_cast<size_t>(pagejit_shared::workspace_bytes(num_seqs, num_kv_heads, num_splits,
                                                             split.rows, split.head_size_v));
}

}  // namespace pagejit
