#include "runtime/engine/launch_check.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/engine/argument_check.h"
#include "runtime/engine/loaded_attention.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

constexpr uintptr_t kVectorBytes = 16;  // what one access of q, out and the workspace moves
constexpr int64_t kRowElements = 8;     // strides of q and out

// Where V lies.
const void* value_cache(const pagejit_shared::AttentionConfig& config, const AttentionArgs& args) {
  return config.is_latent ? args.k_cache : args.v_cache;
}

[[gnu::cold, gnu::noinline]] Status explain_pointers(const pagejit_shared::AttentionConfig& config,
                                                     const AttentionArgs& args) {
  const auto kv_alignment = static_cast<uintptr_t>(config.kv_alignment);
  struct Vector {
    const char* name;
    const void* pointer;
    uintptr_t alignment;
  };
  const Vector vectors[] = {{"q", args.q, kVectorBytes},
                            {"k_cache", args.k_cache, kv_alignment},
                            {"v_cache", value_cache(config, args), kv_alignment},
                            {"out", args.out, kVectorBytes}};
  for (auto [name, pointer, alignment] : vectors) {
    if (bad(pointer, alignment)) return bad_pointer(name, pointer, alignment);
  }
  return bad_pointer("lse", args.lse, alignof(float));
}

// What one cp.async moves.
int64_t kv_copy_elements(const pagejit_shared::AttentionConfig& config) {
  return int64_t{pagejit_shared::kv_copy_bytes(config) / pagejit_shared::kv_bytes(config)} *
         pagejit_shared::elements_per_unit(config.kv_type);
}

// Else the distance of tokens is part of the layout.
bool uses_token_strides(const pagejit_shared::AttentionConfig& config) {
  return config.kv_layout != pagejit_shared::KvLayout::kVllm;
}

[[gnu::cold, gnu::noinline]] Status explain_strides(const pagejit_shared::AttentionConfig& config,
                                                    const AttentionArgs& args) {
  struct Stride {
    const char* name;
    int64_t value;
    int64_t unit;
  };
  const int64_t kv_unit = kv_copy_elements(config);
  const Stride strides[] = {{"q_stride_token", args.q_stride_token, kRowElements},
                            {"q_stride_head", args.q_stride_head, kRowElements},
                            {"k_strides.block", args.k_strides.block, kv_unit},
                            {"k_strides.token", args.k_strides.token, kv_unit},
                            {"k_strides.head", args.k_strides.head, kv_unit},
                            {"v_strides.block", args.v_strides.block, kv_unit},
                            {"v_strides.token", args.v_strides.token, kv_unit},
                            {"v_strides.head", args.v_strides.head, kv_unit},
                            {"out_stride_token", args.out_stride_token, kRowElements},
                            {"out_stride_head", args.out_stride_head, kRowElements}};
  for (const Stride& stride : strides) {
    if (!uses_token_strides(config) && std::string_view(stride.name).ends_with("s.token")) continue;
    if (stride.value % stride.unit != 0) {
      return invalid(format("{} {}: must be a multiple of {} elements", stride.name, stride.value,
                            stride.unit));
    }
  }
  return Status(StatusCode::kInternal, "a stride was refused without a reason");
}

Status check_ints(const char* name, const int32_t* pointer) {
  return bad(pointer, alignof(int32_t)) ? bad_pointer(name, pointer, alignof(int32_t)) : Status();
}

Status check_block_table(const AttentionArgs& args) {
  if (Status status = check_ints("block_table", args.block_table); !status) return status;
  if (args.max_blocks_per_seq < 0) {
    return invalid(format("max_blocks_per_seq {}: must not be negative", args.max_blocks_per_seq));
  }
  if (args.block_table_stride < args.max_blocks_per_seq) {
    return invalid(format("block_table_stride {}: must be at least max_blocks_per_seq ({})",
                          args.block_table_stride, args.max_blocks_per_seq));
  }
  return {};
}

Status check_lists(const pagejit_shared::AttentionConfig& config, const AttentionArgs& args) {
  if (Status status = check_ints("token_lists", args.token_lists); !status) return status;
  if (args.max_list_len < 0) {
    return invalid(format("max_list_len {}: must not be negative", args.max_list_len));
  }
  if (args.token_list_stride < args.max_list_len) {
    return invalid(format("token_list_stride {}: must be at least max_list_len ({})",
                          args.token_list_stride, args.max_list_len));
  }
  for (const auto& [name, pointer] :
       {std::pair{"seq_lens", args.seq_lens}, std::pair{"query_seqs", args.query_seqs}}) {
    if (misaligned(pointer, alignof(int32_t))) return bad_pointer(name, pointer, alignof(int32_t));
  }
  return config.kv_table == pagejit_shared::KvTable::kPositions ? check_block_table(args)
                                                                : Status();
}

// Where the KV tokens are.
Status check_table(const pagejit_shared::AttentionConfig& config, const AttentionArgs& args) {
  if (config.kv_table == pagejit_shared::KvTable::kContiguous) {
    return check_ints("kv_start_loc", args.kv_start_loc);
  }
  if (config.kv_table == pagejit_shared::KvTable::kCsr) {
    Status status = check_ints("kv_indptr", args.kv_indptr);
    if (status) status = check_ints("kv_indices", args.kv_indices);
    if (status) status = check_ints("kv_last_block_len", args.kv_last_block_len);
    return status;
  }
  if (pagejit_shared::has_token_lists(config)) return check_lists(config, args);
  if (Status status = check_ints("seq_lens", args.seq_lens); !status) return status;
  return check_block_table(args);
}

Status check_floats(const char* name, const float* pointer) {
  return bad(pointer, alignof(float)) ? bad_pointer(name, pointer, alignof(float)) : Status();
}

// What only ragged launches use.
Status check_queries(const pagejit_shared::AttentionConfig& config, const AttentionArgs& args) {
  // Row numbers of the launch are 32-bit.
  const int64_t most = INT32_MAX / config.group_size;
  if (args.num_query_tokens < 0 || args.num_query_tokens > most) {
    return invalid(format("num_query_tokens {}: must be in [0, {}] for group_size {}",
                          args.num_query_tokens, most, config.group_size));
  }
  if (bad(args.query_start_loc, alignof(int32_t))) {
    return bad_pointer("query_start_loc", args.query_start_loc, alignof(int32_t));
  }
  if (config.causality == pagejit_shared::Causality::kPerSequence && args.causal_flags == nullptr) {
    return bad_pointer("causal_flags", args.causal_flags, 1);
  }
  return {};
}

// Scales of elements of 8 and 4 bits.
Status check_scales(const pagejit_shared::AttentionConfig& config, const AttentionArgs& args) {
  if (pagejit_shared::element_bytes(config.q_type) == 1) {
    if (Status status = check_floats("q_scale", args.q_scale); !status) return status;
  }
  if (pagejit_shared::has_ds_mla_rows(config)) {
    if (args.k_scale == nullptr) return {};
    return invalid(
        "k_scale: must be null where kv_layout is DS-MLA's, whose rows hold their scales");
  }
  if (Status status = check_floats("k_scale", args.k_scale); !status) return status;
  if (!config.is_latent) {
    if (Status status = check_floats("v_scale", args.v_scale); !status) return status;
  }
  if (config.has_token_scales || args.kv_scale_stride >= 0) return {};
  return invalid(format("kv_scale_stride {}: must be 0 (one scale for all KV heads) or more",
                        args.kv_scale_stride));
}

Status check_block_sparse(const BlockSparseArgs& sparse) {
  constexpr int kMost = 65536;  // products of two of them have 32 bits
  Status status = check_count("block_sparse.local_blocks", sparse.local_blocks, 0, INT32_MAX);
  if (status) status = check_count("block_sparse.vert_stride", sparse.vert_stride, 1, kMost);
  if (status) status = check_count("block_sparse.block_size", sparse.block_size, 1, kMost);
  if (status) status = check_count("block_sparse.tp_rank", sparse.tp_rank, 0, INT32_MAX);
  return status;
}

Status check_ranges(const AttentionArgs& args) {
  const int32_t most = args.max_bidirectional_ranges;
  if (most < 0) {
    return invalid(format("max_bidirectional_ranges {}: must not be negative", most));
  }
  const int64_t stride = args.bidirectional_ranges_stride;
  if (stride != 0 && stride < int64_t{2} * most) {
    return invalid(format(
        "bidirectional_ranges_stride {}: must be 0 (the same ranges for all sequences) or at least "
        "twice max_bidirectional_ranges ({})",
        stride, most));
  }
  return most == 0 ? Status() : check_ints("bidirectional_ranges", args.bidirectional_ranges);
}

Status check_qq_bias(const AttentionArgs& args) {
  if (args.qq_bias_stride_seq < 0) {
    return invalid(format("qq_bias_stride_seq {}: must be 0 (one matrix for all sequences) or more",
                          args.qq_bias_stride_seq));
  }
  if (args.qq_bias_stride_row < 0) {
    return invalid(format("qq_bias_stride_row {}: must not be negative", args.qq_bias_stride_row));
  }
  return check_floats("qq_bias", args.qq_bias);
}

// What only some specs use.
Status check_options(const pagejit_shared::AttentionConfig& config, const AttentionArgs& args) {
  if (pagejit_shared::kv_bytes(config) == 1) {
    if (Status status = check_scales(config, args); !status) return status;
  }
  if (pagejit_shared::element_bytes(config.out_type) == 1) {
    if (Status status = check_floats("out_scale", args.out_scale); !status) return status;
  }
  if (config.is_ragged) {
    if (Status status = check_queries(config, args); !status) return status;
  }
  if (config.has_chunks && args.chunk_size < 1) {
    return invalid(format("chunk_size {}: must be positive", args.chunk_size));
  }
  if (config.has_custom_mask) {
    if (args.custom_mask == nullptr) return bad_pointer("custom_mask", nullptr, 1);
    Status status = check_ints("custom_mask_indptr", args.custom_mask_indptr);
    if (!status) return status;
  }
  if (config.has_bidirectional_ranges) {
    if (Status status = check_ranges(args); !status) return status;
  }
  if (config.is_block_sparse) {
    if (Status status = check_block_sparse(args.block_sparse); !status) return status;
  }
  if (config.has_soft_cap && !(std::isfinite(args.soft_cap) && args.soft_cap > 0)) {
    return invalid(format("soft_cap {}: must be positive and finite", args.soft_cap));
  }
  if (config.has_alibi) {
    if (Status status = check_floats("alibi_slopes", args.alibi_slopes); !status) return status;
  }
  if (config.has_qq_bias) {
    if (Status status = check_qq_bias(args); !status) return status;
  }
  return config.has_sinks ? check_floats("sinks", args.sinks) : Status();
}

}  // namespace

Status check_attention_args(const pagejit_shared::AttentionConfig& config,
                            const AttentionArgs& args) {
  if (args.num_seqs < 0 || args.num_seqs > kMaxGridYZ) {
    return invalid(format("num_seqs {}: must be in [0, {}]", args.num_seqs, kMaxGridYZ));
  }
  const int most_heads = kMaxGridYZ / pagejit_shared::group_tiles(config);
  if (args.num_kv_heads < 1 || args.num_kv_heads > most_heads) {
    return invalid(format("num_kv_heads {}: must be in [1, {}]", args.num_kv_heads, most_heads));
  }
  const auto kv_alignment = static_cast<uintptr_t>(config.kv_alignment);
  if (bad(args.q, kVectorBytes) || bad(args.k_cache, kv_alignment) ||
      bad(value_cache(config, args), kv_alignment) || bad(args.out, kVectorBytes) ||
      misaligned(args.lse, alignof(float))) {
    return explain_pointers(config, args);
  }
  if (config.is_latent && (args.v_cache != nullptr || args.v_scale != nullptr)) {
    return invalid(
        format("{}: must be null where latent is 1, V lies in K's rows and has its scale",
               args.v_cache != nullptr ? "v_cache" : "v_scale"));
  }
  const int64_t row_strides =
      args.q_stride_token | args.q_stride_head | args.out_stride_token | args.out_stride_head;
  int64_t kv_strides =
      args.k_strides.block | args.k_strides.head | args.v_strides.block | args.v_strides.head;
  if (uses_token_strides(config)) kv_strides |= args.k_strides.token | args.v_strides.token;
  if ((row_strides & (kRowElements - 1)) != 0 ||
      (kv_strides & (kv_copy_elements(config) - 1)) != 0) {
    return explain_strides(config, args);
  }
  if (Status status = check_table(config, args); !status) return status;
  if (!std::isfinite(args.scale)) {
    return invalid(format("scale {}: must be finite", args.scale));
  }
  if (args.max_seq_len < 0) {
    return invalid(format("max_seq_len {}: must be 0 (not known) or positive", args.max_seq_len));
  }
  if (args.num_blocks < 0) {
    return invalid(format("num_blocks {}: must be 0 (not checked) or positive", args.num_blocks));
  }
  return check_options(config, args);
}

Status check_num_splits(const LoadedAttention& kernel, const AttentionArgs& args) {
  const int num_splits = args.num_splits;
  if (num_splits < 0 || num_splits > kMaxSplits) {
    return invalid(format("num_splits {}: must be in [0, {}], 0 = chosen by the library",
                          num_splits, kMaxSplits));
  }
  const int sequences = kernel.split_sequences(args);
  const int64_t units = kernel.num_units(sequences, args.num_kv_heads) *
                        pagejit_shared::merge_units(kernel.split.rows);
  if (num_splits > 1 && units > pagejit_shared::kMergeCounterCapacity) {
    return invalid(format(
        "num_splits {}: must be 0 or 1 for {} {} of {} KV heads, which are {} merge units; the "
        "workspace has {} counters",
        num_splits, sequences, kernel.name_of_split_sequences(), args.num_kv_heads, units,
        pagejit_shared::kMergeCounterCapacity));
  }
  return {};
}

Status check_workspace(const LoadedAttention& kernel, const AttentionArgs& args, int num_splits) {
  const int sequences = kernel.split_sequences(args);
  const size_t needed = kernel.workspace_bytes(sequences, args.num_kv_heads, num_splits);
  if (needed == 0) return {};
  if (has_workspace(args.workspace, args.workspace_bytes, needed)) return {};
  return bad_workspace(args.workspace, args.workspace_bytes, needed,
                       format("this launch ({} {}, {} KV heads, {} split{})", sequences,
                              kernel.name_of_split_sequences(), args.num_kv_heads, num_splits,
                              num_splits == 1 ? "" : "s"));
}

}  // namespace pagejit
