// Sparse attention (DeepSeek-V3.2) from an indexer's queries to the result, in one call: logits of
// all keys, the top_k greatest of each row, and attention over the latent rows of these tokens
// alone. Logits are made in chunks of rows, so that the memory they take does not grow with the
// sequences. It is what the launches of an IndexLogitsKernel, a TopKKernel and a Kernel give one
// after the other, to the bit. Thread-safety: specs and arguments are plain values; a handle may be
// launched from any number of threads at once.
//
// Two ways of use. Decode, also speculative: index keys lie in blocks, and each sequence has next_n
// query tokens. Prefill: index keys are contiguous (IndexKeyGatherKernel brings them there), the
// keys of each sequence one behind the other, and each row has a range of them; rows of any
// sequences, any numbers of each. With blocks rows may have ranges too, where all sequences have
// the same number of them: one sequence is prefilled without gathering.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pagejit/export.h"
#include "pagejit/indexer.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/launch.h"
#include "pagejit/spec.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// Only what changes the code; top_k is an argument.
struct PAGEJIT_EXPORT SparseAttentionSpec {
  // kv_table must be kPositions, which needs latent, and queries to be one: each query token is a
  // sequence of this kernel. With debug the other kernels check too.
  KernelSpec attention;
  int index_num_heads = 64;  // as num_heads and head_size in IndexLogitsSpec
  int index_head_size = 128;
  // Index keys are contiguous; else in blocks of attention.block_size tokens, by the same block
  // table as K.
  bool contiguous_index_keys = false;

  bool operator==(const SparseAttentionSpec&) const = default;
};

// The kernels that it is made of; each can be rendered and explained like any other.
struct PAGEJIT_EXPORT SparseAttentionParts {
  IndexLogitsSpec logits;
  TopKSpec top_k;
  KernelSpec attention;
};
PAGEJIT_EXPORT SparseAttentionParts sparse_attention_parts(const SparseAttentionSpec& spec);

// What spec.h says of a KernelSpec holds here; templates so that a braced list of fields still
// means one. The canonical text is e.g. "sparse_attention index_num_heads=64 index_head_size=128 ",
// with "contiguous_index_keys=1 " where it is set, and the attention's.
template <std::same_as<SparseAttentionSpec> Spec>
Status validate(const Spec& spec);
template <std::same_as<SparseAttentionSpec> Spec>
Status supports(const Spec& spec, const Target& target);
template <std::same_as<SparseAttentionSpec> Spec>
std::string canonical_text(const Spec& spec);
template <>
PAGEJIT_EXPORT Status validate(const SparseAttentionSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const SparseAttentionSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const SparseAttentionSpec& spec);

struct SparseAttentionInfo {
  KernelInfo logits;
  KernelInfo top_k;
  KernelInfo attention;
};

// The logits of 100 rows of 160k tokens: enough for launches that fill a GPU.
inline constexpr int64_t kDefaultLogitsBytes = int64_t{64} << 20;

// Device pointers. A row is a query token.
struct SparseAttentionArgs {
  // Rows of index_q, of q and of out: [0, 65535]; 0 launches nothing.
  int32_t num_rows = 0;
  // Tokens that a row sees at most: [1, 16777215]. A row with fewer sees them all; one without any
  // has out = 0, lse = -inf.
  int32_t top_k = 0;

  // ---- The indexer: as in IndexLogitsArgs, where the names have no "index_" ----

  const void* index_q = nullptr;
  int64_t index_q_stride_row = 0;  // bytes
  int64_t index_q_stride_head = 0;
  const float* index_weights = nullptr;
  int64_t index_weights_stride = 0;
  const void* index_k = nullptr;
  int64_t index_k_stride = 0;            // bytes; of keys, or of blocks
  const float* index_k_scale = nullptr;  // contiguous keys
  int32_t num_index_keys = 0;            // contiguous keys
  // The tokens that a row chooses from. Blocks: row r is of the sequence in row r / next_n of
  // block_table; it has what seq_lens and next_n say, or [0, row_ends[r]) with row_begins null.
  // Contiguous keys: [row_begins[r], row_ends[r]), where its sequence's token 0 is row_begins[r];
  // seq_lens is null and next_n is not looked at.
  IndexRowRanges ranges;
  // Blocks: upper bound of the tokens of a sequence: those behind it are not seen, and logits take
  // memory for so many columns. 0: max_blocks_per_seq * block_size, which it is cut down to.
  int32_t max_seq_len = 0;
  // Bytes of the workspace that logits take at most. At least those of one row, with seq_lens of
  // the next_n rows of a sequence: a row has index_logits_stride() floats for its columns
  // (max_seq_len, num_index_keys). Changes speed only.
  int64_t logits_bytes = kDefaultLogitsBytes;

  // Optional: where the positions that each row chose go, in rising order and -1 behind the last:
  // int32 [num_rows, top_k]. Null: into the workspace.
  int32_t* indices = nullptr;
  int64_t indices_stride = 0;  // at least top_k

  // ---- Attention: as in AttentionArgs ----

  const void* q = nullptr;
  int64_t q_stride_token = 0;
  int64_t q_stride_head = 0;
  const float* q_scale = nullptr;

  const void* k_cache = nullptr;
  KvStrides k_strides;
  const float* k_scale = nullptr;
  int64_t kv_scale_stride = 0;
  int64_t num_blocks = 0;  // of index keys too

  const int32_t* block_table = nullptr;
  int64_t block_table_stride = 0;
  int32_t max_blocks_per_seq = 0;
  // int32 [num_rows]: the row of block_table that a row's sequence has; with blocks r / next_n.
  // Null where that is r.
  const int32_t* query_seqs = nullptr;

  void* out = nullptr;
  int64_t out_stride_token = 0;
  int64_t out_stride_head = 0;
  const float* out_scale = nullptr;
  float* lse = nullptr;

  float soft_cap = 0.0f;
  const float* sinks = nullptr;
  int32_t num_kv_heads = 1;
  float scale = 0.0f;
  int32_t num_splits = 0;

  // Device memory of at least workspace_bytes(), 256-byte aligned, initialised once by
  // workspace_init. One workspace serves one stream at a time, of this and of other attention
  // kernels alike.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

struct LoadedSparseAttention;  // internal

// Sparse attention that can be launched on one device, made by Engine::prepare(). Cheap to copy; as
// to lifetime it is as a KernelHandle.
//
// The workspace: an attention workspace (header, counters, partial results), whose counters the
// top-k shares and behind whose header the debug reports of the other kernels lie; then, each from
// a multiple of 256 bytes on, the candidates of split rows, the indices, int32 [num_rows, top_k]
// unless they have a place of their own, and the logits of a chunk of rows.
class PAGEJIT_EXPORT SparseAttentionKernel {
 public:
  SparseAttentionKernel() = default;  // empty: a launch fails

  // Enqueues for each chunk of rows a launch for their logits and one for the greatest of them,
  // then one for the attention of all rows, after all arguments were checked: where that fails
  // nothing is enqueued. Never allocates, locks or reads device memory on success; safe during
  // stream capture: all lengths, ranges and tables may change under a captured graph.
  // kInvalidArgument, kWorkspace, kDriverError.
  Status launch(const SparseAttentionArgs& args, Stream stream) const;

  // Bytes of workspace that launch() needs, by the counts of `args` (num_rows, top_k,
  // num_index_keys, ranges.next_n, max_seq_len, logits_bytes, max_blocks_per_seq, num_kv_heads,
  // num_splits) and by whether `indices` and ranges.seq_lens are null: no pointer is followed. 0
  // where launch() would refuse these counts.
  size_t workspace_bytes(const SparseAttentionArgs& args) const;

  // Bytes that are enough for every launch of at most so many rows, top_k and logits_bytes that
  // leaves num_splits to the library, however long the sequences are.
  size_t max_workspace_bytes(int num_rows, int top_k,
                             int64_t logits_bytes = kDefaultLogitsBytes) const;

  // The number of chunks by the same counts: launch() enqueues 2 * num_chunks() + 1 launches, one
  // fewer where there are no columns. 0 where workspace_bytes() is.
  int num_chunks(const SparseAttentionArgs& args) const;

  // Enqueues the one-time initialisation of a workspace on `stream`. As Kernel::workspace_init().
  Status workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const;

  // As Kernel::read_debug_report(): the first fault of any of the kernels. What the logits and the
  // top-k report counts rows and sequences from the first of their chunk on.
  Status read_debug_report(void* workspace, Stream stream) const;

  // Of an empty handle: default values.
  const SparseAttentionSpec& spec() const;
  const SparseAttentionInfo& info() const;
  explicit operator bool() const { return loaded_ != nullptr; }

 private:
  friend class Engine;
  std::shared_ptr<const LoadedSparseAttention> loaded_;
};

}  // namespace pagejit
