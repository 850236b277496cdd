
#include <algorithm>
#include <string>

#include "pagejit/cascade.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/attention_launch.h"
#include "runtime/engine/loaded_cascade.h"
#include "runtime/engine/merge_states_launch.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

// Where the parts of the workspace are, in bytes from its start; cascade.h describes them.
struct CascadeLayout {
  size_t lse = 0;
  size_t out = 0;
  size_t bytes = 0;

  CascadeLayout(size_t attention_bytes, int64_t num_levels, int64_t num_query_tokens,
                int64_t num_heads, int head_size) {
    const auto rows = static_cast<size_t>(num_levels * num_query_tokens * num_heads);
    lse = round_up_part(attention_bytes);
    out = lse + round_up_part(rows * sizeof(float));
    bytes = out + rows * static_cast<size_t>(head_size) * sizeof(float);
  }
};

// The header and the counters are there even where nothing is split: so a workspace that
// workspace_init() has set up keeps them whatever the launches that use it.
constexpr auto kLeastAttentionBytes = static_cast<size_t>(pagejit_shared::kPartialsOffset);

// One cascade launch: what its levels and their merge get.
class Cascade {
 public:
  Cascade(const LoadedCascade& loaded, const CascadeArgs& args)
      : loaded_(loaded),
        args_(args),
        group_size_(loaded.spec.attention.group_size),
        layout_(attention_bytes(), args.num_levels, args.num_query_tokens, num_heads(),
                value_head_size(loaded.spec.attention)) {}

  size_t workspace_bytes() const { return layout_.bytes; }

  const LoadedAttention& kernel_of(int level) const {
    return level + 1 < args_.num_levels ? loaded_.prefix() : loaded_.suffix();
  }

  // What the number of splits depends on; no pointer.
  AttentionArgs counts_of(int level) const;
  // Of a launch, whose workspace has been checked.
  AttentionArgs level_args(int level) const;
  MergeStatesArgs merge_args() const;

 private:
  int64_t num_heads() const { return int64_t{args_.num_kv_heads} * group_size_; }
  int64_t rows_per_level() const { return args_.num_query_tokens * num_heads(); }

  float* lse_of(int level) const {
    return reinterpret_cast<float*>(static_cast<char*>(args_.workspace) + layout_.lse) +
           level * rows_per_level();
  }
  float* out_of(int level) const {
    return reinterpret_cast<float*>(static_cast<char*>(args_.workspace) + layout_.out) +
           level * rows_per_level() * value_head_size(loaded_.spec.attention);
  }

  size_t attention_bytes() const;

  const LoadedCascade& loaded_;
  const CascadeArgs& args_;
  const int group_size_;
  const CascadeLayout layout_;
};

AttentionArgs Cascade::counts_of(int level) const {
  const CascadeLevel& from = args_.levels[level];
  AttentionArgs to;
  to.max_blocks_per_seq = from.max_blocks_per_seq;
  to.num_query_tokens = args_.num_query_tokens;
  to.num_seqs = from.num_seqs;
  to.num_kv_heads = args_.num_kv_heads;
  to.max_seq_len = from.max_seq_len;
  to.num_splits = from.num_splits;
  return to;
}

size_t Cascade::attention_bytes() const {
  size_t most = kLeastAttentionBytes;
  for (int level = 0; level < args_.num_levels; ++level) {
    const LoadedAttention& kernel = kernel_of(level);
    const AttentionArgs counts = counts_of(level);
    most = std::max(most, kernel.workspace_bytes(kernel.split_sequences(counts),
                                                 counts.num_kv_heads, kernel.num_splits(counts)));
  }
  return most;
}

AttentionArgs Cascade::level_args(int level) const {
  const CascadeLevel& from = args_.levels[level];
  const int64_t head_size = value_head_size(loaded_.spec.attention);
  AttentionArgs to = counts_of(level);
  to.q = args_.q;
  to.q_stride_token = args_.q_stride_token;
  to.q_stride_head = args_.q_stride_head;
  to.k_cache = args_.k_cache;
  to.v_cache = args_.v_cache;
  to.k_strides = args_.k_strides;
  to.v_strides = args_.v_strides;
  to.q_scale = args_.q_scale;
  to.k_scale = args_.k_scale;
  to.v_scale = args_.v_scale;
  to.kv_scale_stride = args_.kv_scale_stride;
  to.k_scale_strides = args_.k_scale_strides;
  to.v_scale_strides = args_.v_scale_strides;
  to.num_blocks = args_.num_blocks;
  to.block_table = from.block_table;
  to.block_table_stride = from.block_table_stride;
  to.seq_lens = from.seq_lens;
  to.kv_indptr = from.kv_indptr;
  to.kv_indices = from.kv_indices;
  to.kv_last_block_len = from.kv_last_block_len;
  to.kv_start_loc = from.kv_start_loc;
  to.query_start_loc = from.query_start_loc;
  to.causal_flags = args_.causal_flags;
  to.out = out_of(level);
  to.out_stride_token = num_heads() * head_size;
  to.out_stride_head = head_size;
  to.lse = lse_of(level);
  to.custom_mask = args_.custom_mask;
  to.custom_mask_indptr = args_.custom_mask_indptr;
  to.soft_cap = args_.soft_cap;
  to.sinks = args_.sinks;
  to.scale = args_.scale;
  to.workspace = args_.workspace;
  to.workspace_bytes = args_.workspace_bytes;
  return to;
}

MergeStatesArgs Cascade::merge_args() const {
  const int64_t head_size = value_head_size(loaded_.spec.attention);
  const CascadeLevel& first = args_.levels[0];
  MergeStatesArgs to;
  to.v = out_of(0);
  to.lse = lse_of(0);
  to.v_stride_state = rows_per_level() * head_size;
  to.lse_stride_state = rows_per_level();
  to.v_stride_token = num_heads() * head_size;
  to.v_stride_head = head_size;
  to.lse_stride_token = num_heads();
  to.lse_stride_head = 1;
  to.out = args_.out;
  to.out_stride_token = args_.out_stride_token;
  to.out_stride_head = args_.out_stride_head;
  to.out_lse = args_.lse;
  to.out_lse_stride_token = num_heads();
  to.out_lse_stride_head = 1;
  to.num_states = args_.num_levels;
  to.num_tokens = args_.num_query_tokens;
  to.num_heads = static_cast<int32_t>(num_heads());
  // Rows that no level has written hold whatever the workspace held before.
  const bool is_ragged = kernel_of(0).config.attention.is_ragged;
  to.token_count = is_ragged ? first.query_start_loc + first.num_seqs : nullptr;
  return to;
}

// What the kernels' own checks do not see, or would name by other names.
Status check_counts(const LoadedCascade& loaded, const CascadeArgs& args) {
  Status status = check_count("num_levels", args.num_levels, 1, kMaxCascadeLevels);
  if (status && args.levels == nullptr) {
    status = invalid("levels is null: must point to num_levels levels");
  }
  const KernelSpec& spec = loaded.spec.attention;
  if (status) {
    status = check_count("num_kv_heads", args.num_kv_heads, 1, kMaxGridYZ / spec.group_size);
  }
  if (status) {
    status = check_count("num_query_tokens", args.num_query_tokens, 0, INT32_MAX / spec.group_size);
  }
  for (int level = 0; status && level < args.num_levels; ++level) {
    const CascadeLevel& at = args.levels[level];
    status = check_count("num_seqs", at.num_seqs, 1, kMaxGridYZ);
    if (status) status = check_count("num_splits", at.num_splits, 0, kMaxSplits);
    if (status) status = check_count("max_blocks_per_seq", at.max_blocks_per_seq, 0, INT32_MAX);
    if (!status) status = status.with_context(format("levels[{}]", level));
  }
  if (!status || spec.queries != QueryLengths::kOne) return status;
  const int32_t last = args.levels[args.num_levels - 1].num_seqs;
  if (args.num_query_tokens == last) return {};
  return invalid(
      format("num_query_tokens {}: must be the num_seqs of the last level ({}), whose "
             "sequences have one query token each",
             args.num_query_tokens, last));
}

Status check_memory(const CascadeArgs& args, size_t needed) {
  if (misaligned(args.lse, alignof(float))) return bad_pointer("lse", args.lse, alignof(float));
  if (has_workspace(args.workspace, args.workspace_bytes, needed)) return {};
  return bad_workspace(args.workspace, args.workspace_bytes, needed,
                       format("this cascade ({} levels, {} query tokens, {} KV heads)",
                              args.num_levels, args.num_query_tokens, args.num_kv_heads));
}

Status launch_cascade(const LoadedCascade& loaded, const CascadeArgs& args, Stream stream) {
  if (args.num_query_tokens == 0) return {};
  if (Status status = check_counts(loaded, args); !status) return status;
  const Cascade cascade(loaded, args);
  if (Status status = check_memory(args, cascade.workspace_bytes()); !status) return status;
  int num_splits[kMaxCascadeLevels];
  for (int level = 0; level < args.num_levels; ++level) {
    const Status status =
        check_attention(cascade.kernel_of(level), cascade.level_args(level), &num_splits[level]);
    if (!status) return status.with_context(format("levels[{}]", level));
  }
  const MergeStatesArgs merge = cascade.merge_args();
  if (Status status = check_merge(*loaded.merge, merge); !status) return status;

  for (int level = 0; level < args.num_levels; ++level) {
    const Status status = launch_checked(cascade.kernel_of(level), cascade.level_args(level),
                                         num_splits[level], stream);
    if (!status) return status.with_context(format("levels[{}]", level));
  }
  return launch_checked_merge(*loaded.merge, merge, stream);
}

Status empty_cascade() {
  return invalid("the CascadeKernel is empty: launch one that Engine::prepare() returned");
}

}  // namespace

Status CascadeKernel::launch(const CascadeArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_cascade);
  return guarded([&] { return launch_cascade(*loaded_, args, stream); });
}

size_t CascadeKernel::workspace_bytes(const CascadeArgs& args) const {
  if (loaded_ == nullptr || args.num_query_tokens == 0) return 0;
  size_t bytes = 0;
  const Status status = guarded([&]() -> Status {
    if (Status s = check_counts(*loaded_, args); !s) return s;
    bytes = Cascade(*loaded_, args).workspace_bytes();
    return {};
  });
  return status ? bytes : 0;
}

size_t CascadeKernel::max_workspace_bytes(int num_levels, int num_query_tokens,
                                          int num_kv_heads) const {
  if (loaded_ == nullptr || num_levels < 1 || num_query_tokens < 1 || num_kv_heads < 1) return 0;
  size_t most = kLeastAttentionBytes;
  for (const LoadedAttention* kernel : {&loaded_->prefix(), &loaded_->suffix()}) {
    most = std::max(most, kernel->max_workspace_bytes());
  }
  const KernelSpec& spec = loaded_->spec.attention;
  return CascadeLayout(most, num_levels, num_query_tokens, int64_t{num_kv_heads} * spec.group_size,
                       value_head_size(spec))
      .bytes;
}

int CascadeKernel::choose_num_splits(const CascadeArgs& args, int level) const {
  if (loaded_ == nullptr || level < 0 || level >= args.num_levels) return 1;
  int chosen = 1;
  const Status status = guarded([&]() -> Status {
    if (Status s = check_counts(*loaded_, args); !s) return s;
    const Cascade cascade(*loaded_, args);
    AttentionArgs counts = cascade.counts_of(level);
    counts.num_splits = 0;
    chosen = cascade.kernel_of(level).num_splits(counts);
    return {};
  });
  return status ? chosen : 1;
}

Status CascadeKernel::workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_cascade);
  return guarded([&] {
    return init_workspace(*loaded_->merge->parts.driver, workspace, workspace_bytes, stream);
  });
}

Status CascadeKernel::read_debug_report(void* workspace, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_cascade);
  return guarded([&] {
    return read_report(*loaded_->merge->parts.driver, workspace, stream)
        .with_context("in one of the levels");
  });
}

const CascadeSpec& CascadeKernel::spec() const {
  static const CascadeSpec empty;
  if (loaded_ == nullptr) return empty;
  return loaded_->spec;
}

const CascadeInfo& CascadeKernel::info() const {
  static const CascadeInfo empty;
  if (loaded_ == nullptr) return empty;
  return loaded_->info;
}

}  // namespace pagejit
