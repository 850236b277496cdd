// The families of kernels, each with its types of C and C++ and the conversions between them, field
// by field; what the functions of family.h are made for. Thread-safety: pure functions.
#pragma once

#include "pagejit/engine.h"
#include "pagejit/paged_attention.h"
#include "runtime/c_api/types.h"

namespace pagejit::c_api {

// Of C's arrays of structs, which a launch converts on the stack: without initialising what it does
// not use.
template <class Element, int kCount>
union Room {
  Room() {}  // NOLINT(modernize-use-equals-default): would be deleted
  Element elements[kCount];
};
struct MergeStatesArgsWithRoom : MergeStatesArgs {
  // For a kernel that takes a list; of others nothing can be said of what the pointer points to.
  void read_list();

  const pagejit_merge_state* list = nullptr;
  Room<MergeState, kMaxListedStates> room;
};
struct CascadeArgsWithRoom : CascadeArgs {
  Room<CascadeLevel, kMaxCascadeLevels> room;
};

IndexRowRanges to_cpp(const pagejit_index_row_ranges& from);
BlockSparseArgs to_cpp(const pagejit_block_sparse_args& from);
Status to_cpp(const pagejit_swap_blocks_args* from, SwapBlocksArgs* to);
Status to_cpp(const pagejit_paged_attention_args* from, PagedAttentionArgs* to);

struct AttentionFamily {
  using Spec = KernelSpec;
  using Handle = Kernel;
  using Args = AttentionArgs;
  using CSpec = pagejit_kernel_spec;
  using CHandle = pagejit_kernel;
  using CArgs = pagejit_attention_args;
  static constexpr Kind kKind = Kind::kKernel;
  static constexpr const char* kSpecName = "pagejit_kernel_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct MergeStatesFamily {
  using Spec = MergeStatesSpec;
  using Handle = MergeStatesKernel;
  using Args = MergeStatesArgsWithRoom;
  using CSpec = pagejit_merge_states_spec;
  using CHandle = pagejit_merge_states_kernel;
  using CArgs = pagejit_merge_states_args;
  static constexpr Kind kKind = Kind::kMergeStatesKernel;
  static constexpr const char* kSpecName = "pagejit_merge_states_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct CacheWriteFamily {
  using Spec = CacheWriteSpec;
  using Handle = CacheWriteKernel;
  using Args = CacheWriteArgs;
  using CSpec = pagejit_cache_write_spec;
  using CHandle = pagejit_cache_write_kernel;
  using CArgs = pagejit_cache_write_args;
  static constexpr Kind kKind = Kind::kCacheWriteKernel;
  static constexpr const char* kSpecName = "pagejit_cache_write_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct CopyBlocksFamily {
  using Spec = CopyBlocksSpec;
  using Handle = CopyBlocksKernel;
  using Args = CopyBlocksArgs;
  using CSpec = pagejit_copy_blocks_spec;
  using CHandle = pagejit_copy_blocks_kernel;
  using CArgs = pagejit_copy_blocks_args;
  static constexpr Kind kKind = Kind::kCopyBlocksKernel;
  static constexpr const char* kSpecName = "pagejit_copy_blocks_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct GatherCacheFamily {
  using Spec = GatherCacheSpec;
  using Handle = GatherCacheKernel;
  using Args = GatherCacheArgs;
  using CSpec = pagejit_gather_cache_spec;
  using CHandle = pagejit_gather_cache_kernel;
  using CArgs = pagejit_gather_cache_args;
  static constexpr Kind kKind = Kind::kGatherCacheKernel;
  static constexpr const char* kSpecName = "pagejit_gather_cache_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct ConvertFloat8Family {
  using Spec = ConvertFloat8Spec;
  using Handle = ConvertFloat8Kernel;
  using Args = ConvertFloat8Args;
  using CSpec = pagejit_convert_float8_spec;
  using CHandle = pagejit_convert_float8_kernel;
  using CArgs = pagejit_convert_float8_args;
  static constexpr Kind kKind = Kind::kConvertFloat8Kernel;
  static constexpr const char* kSpecName = "pagejit_convert_float8_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct MlaCacheWriteFamily {
  using Spec = MlaCacheWriteSpec;
  using Handle = MlaCacheWriteKernel;
  using Args = MlaCacheWriteArgs;
  using CSpec = pagejit_mla_cache_write_spec;
  using CHandle = pagejit_mla_cache_write_kernel;
  using CArgs = pagejit_mla_cache_write_args;
  static constexpr Kind kKind = Kind::kMlaCacheWriteKernel;
  static constexpr const char* kSpecName = "pagejit_mla_cache_write_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct IndexKeyWriteFamily {
  using Spec = IndexKeyWriteSpec;
  using Handle = IndexKeyWriteKernel;
  using Args = IndexKeyWriteArgs;
  using CSpec = pagejit_index_key_write_spec;
  using CHandle = pagejit_index_key_write_kernel;
  using CArgs = pagejit_index_key_write_args;
  static constexpr Kind kKind = Kind::kIndexKeyWriteKernel;
  static constexpr const char* kSpecName = "pagejit_index_key_write_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct IndexKeyGatherFamily {
  using Spec = IndexKeyGatherSpec;
  using Handle = IndexKeyGatherKernel;
  using Args = IndexKeyGatherArgs;
  using CSpec = pagejit_index_key_gather_spec;
  using CHandle = pagejit_index_key_gather_kernel;
  using CArgs = pagejit_index_key_gather_args;
  static constexpr Kind kKind = Kind::kIndexKeyGatherKernel;
  static constexpr const char* kSpecName = "pagejit_index_key_gather_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct IndexLogitsFamily {
  using Spec = IndexLogitsSpec;
  using Handle = IndexLogitsKernel;
  using Args = IndexLogitsArgs;
  using CSpec = pagejit_index_logits_spec;
  using CHandle = pagejit_index_logits_kernel;
  using CArgs = pagejit_index_logits_args;
  static constexpr Kind kKind = Kind::kIndexLogitsKernel;
  static constexpr const char* kSpecName = "pagejit_index_logits_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct TopKFamily {
  using Spec = TopKSpec;
  using Handle = TopKKernel;
  using Args = TopKArgs;
  using CSpec = pagejit_top_k_spec;
  using CHandle = pagejit_top_k_kernel;
  using CArgs = pagejit_top_k_args;
  static constexpr Kind kKind = Kind::kTopKKernel;
  static constexpr const char* kSpecName = "pagejit_top_k_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct CascadeFamily {
  using Spec = CascadeSpec;
  using Handle = CascadeKernel;
  using Args = CascadeArgsWithRoom;
  using CSpec = pagejit_cascade_spec;
  using CHandle = pagejit_cascade_kernel;
  using CArgs = pagejit_cascade_args;
  static constexpr Kind kKind = Kind::kCascadeKernel;
  static constexpr const char* kSpecName = "pagejit_cascade_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

struct SparseAttentionFamily {
  using Spec = SparseAttentionSpec;
  using Handle = SparseAttentionKernel;
  using Args = SparseAttentionArgs;
  using CSpec = pagejit_sparse_attention_spec;
  using CHandle = pagejit_sparse_attention_kernel;
  using CArgs = pagejit_sparse_attention_args;
  static constexpr Kind kKind = Kind::kSparseAttentionKernel;
  static constexpr const char* kSpecName = "pagejit_sparse_attention_spec";

  static Status to_cpp(const CSpec* from, Spec* to);
  static Status to_cpp(const CArgs* from, Args* to);
  static CSpec to_c(const Spec& from);
  static CArgs default_args();
};

}  // namespace pagejit::c_api
