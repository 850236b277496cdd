
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "pagejit/engine.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/attention_launch.h"
#include "runtime/engine/launch_check.h"
#include "runtime/engine/loaded_attention.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

using pagejit_shared::WorkspaceHeader;

const LoadedAttention& attention(const LoadedKernel& kernel) {
  return static_cast<const LoadedAttention&>(kernel);
}

// What depends on the head is only needed modulo the stride, where nothing overflows on the device.
pagejit_shared::BlockSparseParams block_sparse_params(const AttentionConfig& config,
                                                      const AttentionArgs& args) {
  if (!config.is_block_sparse) return {};
  const BlockSparseArgs& sparse = args.block_sparse;
  const int64_t stride = sparse.vert_stride;
  const int64_t step = int64_t{sparse.head_sliding_step} % stride;
  const bool by_kv_head = sparse.head_sliding_step < 0;
  const int64_t num_heads = int64_t{args.num_kv_heads} * (by_kv_head ? 1 : config.group_size);
  const int64_t heads_before = sparse.tp_rank % stride * (num_heads % stride) % stride;
  return {.local_blocks = sparse.local_blocks,
          .vert_stride = sparse.vert_stride,
          .block_size = sparse.block_size,
          .offset = static_cast<int>((heads_before * std::abs(step) + 1) % stride),
          .head_step = static_cast<int>(step)};
}

AttentionParams make_params(const LoadedAttention& kernel, const AttentionArgs& args,
                            int num_splits) {
  // From elements to what memory is addressed by.
  const int unit_shift =
      pagejit_shared::elements_per_unit(kernel.config.attention.kv_type) == 2 ? 1 : 0;
  return {
      .q = args.q,
      .k_cache = args.k_cache,
      .v_cache = args.v_cache,
      .out = args.out,
      .lse = args.lse,
      .block_table = args.block_table,
      .seq_lens = args.seq_lens,
      .kv_indptr = args.kv_indptr,
      .kv_indices = args.kv_indices,
      .kv_last_block_len = args.kv_last_block_len,
      .kv_start_loc = args.kv_start_loc,
      .token_lists = args.token_lists,
      .query_seqs = args.query_seqs,
      .query_start_loc = args.query_start_loc,
      .causal_flags = args.causal_flags,
      .custom_mask = args.custom_mask,
      .custom_mask_indptr = args.custom_mask_indptr,
      .bidirectional_ranges = args.bidirectional_ranges,
      .qq_bias = args.qq_bias,
      .alibi_slopes = args.alibi_slopes,
      .sinks = args.sinks,
      .q_scale = args.q_scale,
      .k_scale = args.k_scale,
      .v_scale = kernel.config.attention.is_latent ? args.k_scale : args.v_scale,
      .out_scale = args.out_scale,
      .workspace = args.workspace,
      .q_stride_token = args.q_stride_token,
      .q_stride_head = args.q_stride_head,
      .k_stride_block = args.k_strides.block >> unit_shift,
      .k_stride_token = args.k_strides.token >> unit_shift,
      .k_stride_head = args.k_strides.head >> unit_shift,
      .v_stride_block = args.v_strides.block >> unit_shift,
      .v_stride_token = args.v_strides.token >> unit_shift,
      .v_stride_head = args.v_strides.head >> unit_shift,
      .out_stride_token = args.out_stride_token,
      .out_stride_head = args.out_stride_head,
      .block_table_stride = args.block_table_stride,
      .token_list_stride = args.token_list_stride,
      .kv_scale_stride = args.kv_scale_stride,
      .k_scale_stride_block = args.k_scale_strides.block,
      .k_scale_stride_token = args.k_scale_strides.token,
      .k_scale_stride_head = args.k_scale_strides.head,
      .v_scale_stride_block = args.v_scale_strides.block,
      .v_scale_stride_token = args.v_scale_strides.token,
      .v_scale_stride_head = args.v_scale_strides.head,
      .bidirectional_ranges_stride = args.bidirectional_ranges_stride,
      .qq_bias_stride_seq = args.qq_bias_stride_seq,
      .qq_bias_stride_row = args.qq_bias_stride_row,
      .num_blocks = args.num_blocks,
      .max_blocks_per_seq = args.max_blocks_per_seq,
      .max_list_len = args.max_list_len,
      .num_seqs = args.num_seqs,
      .num_kv_heads = args.num_kv_heads,
      .num_query_tokens = args.num_query_tokens,
      .num_row_tiles = kernel.row_tiles(args),
      .num_splits = num_splits,
      .splits_reciprocal = pagejit_shared::split_reciprocal(num_splits),
      // Who asks for a number of splits gets it, down to one tile each.
      .min_split_tokens =
          args.num_splits == 0 ? kernel.split.min_split_tokens() : kernel.split.tile_tokens,
      .window_left = args.window_left,
      .window_right = args.window_right,
      .chunk_size = args.chunk_size,
      .num_bidirectional_ranges = args.max_bidirectional_ranges,
      .ranges_within_window = args.ranges_within_window ? 1 : 0,
      .sparse = block_sparse_params(kernel.config.attention, args),
      .score_scale = pagejit_shared::score_scale(kernel.config.attention, args.scale),
      .q_sign_bits = pagejit_shared::query_sign_bits(args.scale),
      .soft_cap = args.soft_cap,
  };
}

Grid grid_of(const AttentionConfig& config, const AttentionParams& params) {
  const auto num_splits = static_cast<unsigned>(params.num_splits);
  const auto num_seqs = static_cast<unsigned>(params.num_seqs);
  const int heads = params.num_kv_heads * pagejit_shared::group_tiles(config);
  Grid grid{num_splits, static_cast<unsigned>(heads), num_seqs};
  if (config.is_ragged) {
    const auto row_tiles = static_cast<unsigned>(params.num_row_tiles);
    // Row tiles, then the further splits of the sequences; or each tile's splits.
    grid.x =
        config.splits_row_tiles ? row_tiles * num_splits : row_tiles + num_seqs * (num_splits - 1);
    grid.z = 1;
  }
  return grid;
}

}  // namespace

Status check_attention(const LoadedAttention& kernel, const AttentionArgs& args, int* num_splits) {
  if (Status status = check_attention_args(kernel.config.attention, args); !status) {
    return status;
  }
  if (args.num_splits != 0) {
    if (Status status = check_num_splits(kernel, args); !status) return status;
  }
  *num_splits = kernel.num_splits(args);
  return check_workspace(kernel, args, *num_splits);
}

Status launch_checked(const LoadedAttention& kernel, const AttentionArgs& args, int num_splits,
                      Stream stream) {
  AttentionParams params = make_params(kernel, args, num_splits);
  return kernel.launch(grid_of(kernel.config.attention, params), &params, stream);
}

namespace {

Status launch_attention(const LoadedAttention& kernel, const AttentionArgs& args, Stream stream) {
  if (args.num_seqs == 0) return {};
  int num_splits = 1;
  if (Status status = check_attention(kernel, args, &num_splits); !status) return status;
  return launch_checked(kernel, args, num_splits, stream);
}

Status check_workspace_start(const void* workspace) {
  if (workspace == nullptr) {
    return Status(StatusCode::kWorkspace, "workspace is null: must be a device pointer");
  }
  if (misaligned(workspace, kWorkspaceAlign)) {
    return Status(StatusCode::kWorkspace, format("workspace is {}: must be aligned to {} bytes",
                                                 workspace, kWorkspaceAlign));
  }
  return {};
}

CUdeviceptr device_address(const void* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace

Status init_workspace(const Driver& driver, void* workspace, size_t workspace_bytes,
                      Stream stream) {
  if (Status status = check_workspace_start(workspace); !status) return status;
  constexpr size_t kNeeded = pagejit_shared::kPartialsOffset;
  if (workspace_bytes < kNeeded) {
    return Status(StatusCode::kWorkspace,
                  format("workspace_bytes {}: too small, the header and the counters alone take "
                         "{}",
                         workspace_bytes, kNeeded));
  }
  const CUdeviceptr start = device_address(workspace);
  auto* cuda_stream = static_cast<CUstream>(stream);
  CUresult result = driver.cuMemsetD32Async(start, 0, kNeeded / 4, cuda_stream);
  if (result == CUDA_SUCCESS) {
    static_assert(offsetof(WorkspaceHeader, magic) == 0);
    result = driver.cuMemsetD32Async(start, pagejit_shared::kWorkspaceMagic, 1, cuda_stream);
  }
  return driver.check(result, "cuMemsetD32Async");
}

namespace {

std::string describe_report(const WorkspaceHeader& header) {
  const std::string where = format("sequence {}", header.debug_seq_idx);
  switch (header.debug_code) {
    case pagejit_shared::kDebugBadBlockId:
      return format("{}: entry {} of its block table is {}, must be in [0, num_blocks)", where,
                    header.debug_position, header.debug_value);
    case pagejit_shared::kDebugBadSeqLen:
      return format("{}: seq_len is {}, must be in [0, max_blocks_per_seq * block_size]", where,
                    header.debug_value);
    case pagejit_shared::kDebugBadQueryRange:
      return format(
          "{}: query_start_loc[{}] is {}, must be in [query_start_loc[{}], num_query_tokens]",
          where, header.debug_position, header.debug_value, header.debug_seq_idx);
    case pagejit_shared::kDebugBadKvIndptr:
    case pagejit_shared::kDebugBadKvStartLoc: {
      const char* name =
          header.debug_code == pagejit_shared::kDebugBadKvIndptr ? "kv_indptr" : "kv_start_loc";
      return format("{}: {}[{}] is {}, must not be negative nor less than the entry before", where,
                    name, header.debug_position, header.debug_value);
    }
    case pagejit_shared::kDebugBadListEntry:
      return format("query token {}: entry {} of its list is {}, beyond its blocks",
                    header.debug_seq_idx, header.debug_position, header.debug_value);
    case pagejit_shared::kDebugBadListLen:
      return format("query token {}: its list has {} entries, must be in [0, max_list_len]",
                    header.debug_seq_idx, header.debug_value);
    case pagejit_shared::kDebugBadLastBlockLen:
      return format("{}: kv_last_block_len is {}, must be in [1, block_size]", where,
                    header.debug_value);
    case pagejit_shared::kDebugBadWorkspace:
      return format(
          "{}: the workspace's first word is {:#x}, must be {:#x}; call workspace_init "
          "once before the first launch",
          where, header.debug_value, pagejit_shared::kWorkspaceMagic);
    case pagejit_shared::kDebugBadCounter:
      return format(
          "{}: the counter of merge unit {} is {}, must be in [0, num_splits); the "
          "workspace was overwritten, or two streams use it at once",
          where, header.debug_position, header.debug_value);
    default:
      return format("{}: unknown report {} (position {}, value {})", where, header.debug_code,
                    header.debug_position, header.debug_value);
  }
}

}  // namespace

Status read_report(const Driver& driver, void* workspace, Stream stream) {
  if (Status status = check_workspace_start(workspace); !status) return status;
  auto* cuda_stream = static_cast<CUstream>(stream);
  const CUdeviceptr start = device_address(workspace);
  WorkspaceHeader header{};
  CUresult result = driver.cuMemcpyDtoHAsync(&header, start, sizeof(header), cuda_stream);
  if (result != CUDA_SUCCESS) return driver.failure(result, "cuMemcpyDtoHAsync");
  result = driver.cuStreamSynchronize(cuda_stream);
  if (result != CUDA_SUCCESS) return driver.failure(result, "cuStreamSynchronize");
  if (header.debug_code == pagejit_shared::kDebugOk) {
    if (header.magic == pagejit_shared::kWorkspaceMagic) return {};
    return Status(StatusCode::kWorkspace,
                  format("the workspace's first word is {:#x}, must be {:#x}; call workspace_init "
                         "once before the first launch",
                         header.magic, pagejit_shared::kWorkspaceMagic));
  }
  // All of the report, the magic word in front of it stays.
  constexpr size_t kBegin = offsetof(WorkspaceHeader, debug_code);
  constexpr size_t kEnd = offsetof(WorkspaceHeader, reserved);
  result = driver.cuMemsetD8Async(start + kBegin, 0, kEnd - kBegin, cuda_stream);
  if (result == CUDA_SUCCESS) result = driver.cuStreamSynchronize(cuda_stream);
  if (result != CUDA_SUCCESS) return driver.failure(result, "cuMemsetD8Async");
  return Status(StatusCode::kDeviceCheckFailed, describe_report(header));
}

Status Kernel::launch(const AttentionArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_attention(attention(*loaded_), args, stream); });
}

int Kernel::choose_num_splits(int num_seqs, int num_kv_heads, int64_t max_seq_len) const {
  if (loaded_ == nullptr || num_seqs < 1 || num_kv_heads < 1 || max_seq_len < 1) return 1;
  const LoadedAttention& kernel = attention(*loaded_);
  return choose_splits(kernel.split, kernel.num_units(num_seqs, num_kv_heads), max_seq_len);
}

size_t Kernel::workspace_bytes(int num_seqs, int num_kv_heads, int64_t max_seq_len,
                               int num_splits) const {
  if (loaded_ == nullptr || num_seqs < 1 || num_kv_heads < 1) return 0;
  const int splits =
      num_splits > 0 ? num_splits : choose_num_splits(num_seqs, num_kv_heads, max_seq_len);
  return attention(*loaded_).workspace_bytes(num_seqs, num_kv_heads, splits);
}

int Kernel::choose_num_splits(const AttentionArgs& args) const {
  if (loaded_ == nullptr || args.num_seqs < 1 || args.num_kv_heads < 1) return 1;
  AttentionArgs chosen = args;
  chosen.num_splits = 0;
  return attention(*loaded_).num_splits(chosen);
}

size_t Kernel::workspace_bytes(const AttentionArgs& args) const {
  if (loaded_ == nullptr || args.num_seqs < 1 || args.num_kv_heads < 1) return 0;
  const LoadedAttention& kernel = attention(*loaded_);
  return kernel.workspace_bytes(kernel.split_sequences(args), args.num_kv_heads,
                                kernel.num_splits(args));
}

size_t Kernel::max_workspace_bytes() const {
  return loaded_ == nullptr ? 0 : attention(*loaded_).max_workspace_bytes();
}

Status Kernel::workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded(
      [&] { return init_workspace(*loaded_->parts.driver, workspace, workspace_bytes, stream); });
}

Status Kernel::read_debug_report(void* workspace, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return read_report(*loaded_->parts.driver, workspace, stream); });
}

const KernelSpec& Kernel::spec() const {
  static const KernelSpec empty;
  return loaded_ != nullptr ? attention(*loaded_).config.spec : empty;
}

}  // namespace pagejit
