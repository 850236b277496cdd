// Cascade attention: a batch of sequences whose KV begins with shared prefixes, in one call. Each
// query token attends to one group of KV tokens per level: level 0 holds the prefixes that most
// sequences share, the next ones those of smaller groups, the last one each sequence's own suffix.
// The query tokens of a group are attended together, so that shared K and V leave global memory
// once per tile of 128 rows (query tokens times query heads per KV head) instead of once per
// sequence; the levels' partial results are merged by their lse. The result is that of one
// attention over the concatenated KV, as far as lse in f32 can weigh the levels: to 1e-6 where
// scores are below 10, to 4e-3 where they are 5e4. Thread-safety: specs and arguments are plain
// values; a handle may be launched from any number of threads at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pagejit/export.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/launch.h"
#include "pagejit/merge_states.h"
#include "pagejit/spec.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// More levels than any tree of prompts has.
inline constexpr int kMaxCascadeLevels = 32;

// Only what changes the code; the number of levels is an argument.
struct PAGEJIT_EXPORT CascadeSpec {
  // The attention as if it were not cascaded. queries, causality, custom_mask and sinks are those
  // of the last level: its kernel applies them, and all levels before it are seen in full. Must not
  // have window, chunked, alibi, bidirectional_ranges or block_sparse: these go by positions in the
  // whole sequence, which no level knows. Nor latent, qq_bias, batch_invariant, pdl or an
  // out_dtype of 8 bits.
  KernelSpec attention;

  bool operator==(const CascadeSpec&) const = default;
};

// The kernels that a cascade is made of; each can be rendered and explained like any other.
struct PAGEJIT_EXPORT CascadeParts {
  KernelSpec prefix;  // of all levels but the last: queries shared, no mask, f32 results
  KernelSpec suffix;  // of the last level, with f32 results
  MergeStatesSpec merge;
};
PAGEJIT_EXPORT CascadeParts cascade_parts(const CascadeSpec& spec);

// What spec.h says of a KernelSpec holds here; templates so that a braced list of fields still
// means one. The canonical text is "cascade " and the attention's.
template <std::same_as<CascadeSpec> Spec>
Status validate(const Spec& spec);
template <std::same_as<CascadeSpec> Spec>
Status supports(const Spec& spec, const Target& target);
template <std::same_as<CascadeSpec> Spec>
std::string canonical_text(const Spec& spec);
template <>
PAGEJIT_EXPORT Status validate(const CascadeSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const CascadeSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const CascadeSpec& spec);

struct CascadeInfo {
  KernelInfo prefix;
  KernelInfo suffix;
  KernelInfo merge;
};

// One level: num_seqs groups of query tokens, each with KV tokens of its own. What AttentionArgs
// says of a sequence holds for a group.
struct CascadeLevel {
  // Device memory, int32 [num_seqs + 1], from 0 on, not decreasing: group i has the query tokens
  // [query_start_loc[i], query_start_loc[i + 1]), none or any number. Ignored in the last level
  // where the spec's queries are one: there sequence i has query token i. All levels must end with
  // the same number of query tokens: query_start_loc[num_seqs] <= num_query_tokens. Query tokens
  // behind it are not touched.
  const int32_t* query_start_loc = nullptr;
  int32_t num_seqs = 0;  // at least 1; on the last level the sequences of the batch

  // The KV tokens of the group on this level alone, by the spec's kv_table, as in AttentionArgs. A
  // prefix may end anywhere in its last block; the next level begins with a block of its own.
  const int32_t* block_table = nullptr;  // int32 [num_seqs, max_blocks_per_seq]
  int64_t block_table_stride = 0;
  int32_t max_blocks_per_seq = 0;
  // int32 [num_seqs]. 0: the group has no KV tokens on this level. On the last level the sequence's
  // own tokens, its query tokens included: with a causal mask they stand at its end, and there must
  // be no more of them than tokens.
  const int32_t* seq_lens = nullptr;
  const int32_t* kv_indptr = nullptr;
  const int32_t* kv_indices = nullptr;
  const int32_t* kv_last_block_len = nullptr;
  const int32_t* kv_start_loc = nullptr;

  // As in AttentionArgs, of this level.
  int32_t max_seq_len = 0;
  int32_t num_splits = 0;
};

// What is not described here is as in AttentionArgs, and the same for all levels.
struct CascadeArgs {
  // Host memory, read by launch() and not kept: num_levels levels, at most kMaxCascadeLevels.
  const CascadeLevel* levels = nullptr;
  int32_t num_levels = 0;

  const void* q = nullptr;
  int64_t q_stride_token = 0;
  int64_t q_stride_head = 0;

  const void* k_cache = nullptr;
  const void* v_cache = nullptr;
  KvStrides k_strides;
  KvStrides v_strides;
  const float* q_scale = nullptr;
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
  int64_t kv_scale_stride = 0;
  KvStrides k_scale_strides;
  KvStrides v_scale_strides;
  int64_t num_blocks = 0;

  // Rows of q and out; 0 launches nothing. Where the spec's queries are one, the num_seqs of the
  // last level.
  int32_t num_query_tokens = 0;
  int32_t num_kv_heads = 0;

  // A query token that sees no key on any level has out = 0, lse = -inf (or the sink).
  void* out = nullptr;
  int64_t out_stride_token = 0;
  int64_t out_stride_head = 0;
  float* lse = nullptr;  // of all levels together

  // Of the last level, where the spec has them: a flag per sequence; bit q * seq_len + k, where
  // seq_len and k count the tokens of the last level.
  const uint8_t* causal_flags = nullptr;
  const uint8_t* custom_mask = nullptr;
  const int32_t* custom_mask_indptr = nullptr;
  float soft_cap = 0.0f;
  const float* sinks = nullptr;  // take part once in a query token's sum
  float scale = 0.0f;

  // Device memory of at least workspace_bytes(), 256-byte aligned, initialised once by
  // workspace_init. One workspace serves one stream at a time, cascades and single kernels alike.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

struct LoadedCascade;  // internal

// A launchable cascade on one device, made by Engine::prepare(). Cheap to copy; as to lifetime it
// is as a KernelHandle.
//
// The workspace: an attention workspace (header, counters, the partial results of the level that
// needs most; one level uses it after the other), then from a multiple of 256 bytes on the levels'
// lse, f32 [num_levels, num_query_tokens, num_heads], then from a multiple of 256 bytes on their
// results, f32 [num_levels, num_query_tokens, num_heads, head_size].
class PAGEJIT_EXPORT CascadeKernel {
 public:
  CascadeKernel() = default;  // empty: a launch fails

  // Enqueues num_levels + 1 launches on `stream`, after all arguments were checked: where that
  // fails nothing is enqueued. Never allocates, locks or reads device memory on success; safe
  // during stream capture: all lengths and tables may change under a captured graph.
  // kInvalidArgument, kWorkspace, kDriverError.
  Status launch(const CascadeArgs& args, Stream stream) const;

  // Bytes of workspace that launch() needs, by the counts of `args` alone (num_levels, num_seqs,
  // max_blocks_per_seq, max_seq_len, num_splits, num_query_tokens, num_kv_heads): no pointer but
  // `levels` is looked at. 0 where launch() would refuse these counts.
  size_t workspace_bytes(const CascadeArgs& args) const;

  // Bytes that are enough for every launch of at most so many levels, query tokens and KV heads
  // that leaves num_splits to the library.
  size_t max_workspace_bytes(int num_levels, int num_query_tokens, int num_kv_heads) const;

  // The number of splits of a level, by the same counts. At least 1.
  int choose_num_splits(const CascadeArgs& args, int level) const;

  // Enqueues the one-time initialisation of a workspace on `stream`. As Kernel::workspace_init().
  Status workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const;

  // As Kernel::read_debug_report(): the first fault of any level.
  Status read_debug_report(void* workspace, Stream stream) const;

  // Of an empty handle: default values.
  const CascadeSpec& spec() const;
  const CascadeInfo& info() const;
  explicit operator bool() const { return loaded_ != nullptr; }

 private:
  friend class Engine;
  std::shared_ptr<const LoadedCascade> loaded_;
};

}  // namespace pagejit
