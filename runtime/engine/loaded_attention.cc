#include "runtime/engine/loaded_attention.h"

#include <algorithm>
#include <utility>

#include "generator/planner.h"

namespace pagejit {
namespace {

// Memory latency under load; with the bytes a CTA has in flight it bounds what one CTA can stream.
constexpr double kLatencyNs = 1000;

}  // namespace

LoadedAttention::LoadedAttention(LoadedKernelParts loaded_parts, CUdevice on_device)
    : LoadedKernel(std::move(loaded_parts), on_device),
      config(std::get<KernelConfig>(parts.config)) {}

void LoadedAttention::describe_device(const DeviceInfo& info, int ctas_per_sm) {
  split.num_sms = std::max(1, info.num_sms);
  split.ctas_per_sm = ctas_per_sm;
  if (info.bytes_per_ns > 0) split.sm_bytes_per_ns = info.bytes_per_ns / split.num_sms;
  split.rows = pagejit_shared::partial_rows(config.attention);
  split.head_size_v = value_head_size(config.spec);
  split.tile_tokens = config.tile_tokens();
  if (config.spec.batch_invariant) split.fixed_split_tokens = pagejit_shared::kFixedSplitTokens;
  split.token_bytes = kv_token_bytes(config.spec);
  // All stages but the one being computed on are in flight.
  const int stages = std::max(1, config.attention.num_stages - 1);
  split.cta_bytes_per_ns =
      static_cast<double>(stages) * split.tile_tokens * split.token_bytes / kLatencyNs;
  // A tall tile waits for its products instead.
  if (const double product_ns = product_ns_per_token(config); product_ns > 0) {
    split.cta_bytes_per_ns = std::min(split.cta_bytes_per_ns, split.token_bytes / product_ns);
  }
}

int LoadedAttention::row_tiles(const AttentionArgs& args) const {
  const AttentionConfig& c = config.attention;
  if (!c.is_ragged) return 0;
  return pagejit_shared::row_tiles_bound(args.num_seqs, args.num_query_tokens, c.group_size,
                                         pagejit_shared::tile_rows(c));
}

int LoadedAttention::split_sequences(const AttentionArgs& args) const {
  return config.attention.splits_row_tiles ? row_tiles(args) : args.num_seqs;
}

const char* LoadedAttention::name_of_split_sequences() const {
  return config.attention.splits_row_tiles ? "row tiles" : "sequences";
}

int64_t LoadedAttention::num_units(int num_sequences, int num_kv_heads) const {
  return int64_t{num_sequences} * num_kv_heads * pagejit_shared::group_tiles(config.attention);
}

int64_t LoadedAttention::length_bound(const AttentionArgs& args) const {
  if (pagejit_shared::has_token_lists(config.attention)) {
    return args.max_seq_len == 0 ? args.max_list_len
                                 : std::min(args.max_seq_len, args.max_list_len);
  }
  if (config.spec.kv_table != KvTable::kBlocks) return args.max_seq_len;
  const int64_t capacity = int64_t{args.max_blocks_per_seq} * config.spec.block_size;
  return args.max_seq_len == 0 ? capacity : std::min<int64_t>(args.max_seq_len, capacity);
}

int LoadedAttention::num_splits(const AttentionArgs& args) const {
  if (args.num_splits != 0) return args.num_splits;
  return choose_splits(split, num_units(split_sequences(args), args.num_kv_heads),
                       length_bound(args));
}

size_t LoadedAttention::workspace_bytes(int num_sequences, int num_kv_heads, int num_splits) const {
  if (num_splits <= 1) {
    return config.spec.debug ? static_cast<size_t>(pagejit_shared::kPartialsOffset) : 0;
  }
  return static_cast<size_t>(pagejit_shared::workspace_bytes(
      num_units(num_sequences, num_kv_heads), 1, num_splits, split.rows, split.head_size_v));
}

size_t LoadedAttention::max_workspace_bytes() const {
  return static_cast<size_t>(
      pagejit_shared::workspace_bytes(max_partials(split), 1, 1, split.rows, split.head_size_v));
}

}  // namespace pagejit
