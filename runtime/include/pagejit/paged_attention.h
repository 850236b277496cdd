// vLLM's paged_attention_v1 and paged_attention_v2 under their names, with their parameters, over
// their pair of cache layouts: decode, one query token per sequence. What they do not have is in
// launch.h. Thread-safety: a PagedAttention may be used from any number of threads at once.
//
//   pagejit::PagedAttention attention(engine);  // once per CUDA context
//   ...
//   pagejit::PagedAttentionArgs args = {
//       .out = out,                  // [num_seqs, num_heads, head_size]
//       .query = query,              // [num_seqs, num_heads, head_size]
//       .key_cache = key_cache,      // [num_blocks, num_kv_heads, head_size / x, block_size, x]
//       .value_cache = value_cache,  // [num_blocks, num_kv_heads, head_size, block_size]
//       .num_kv_heads = 8,
//       .scale = 0.088388f,
//       .block_tables = block_tables,
//       .seq_lens = seq_lens,
//       .block_size = 16,
//       .max_seq_len = max_seq_len,
//       .kv_cache_dtype = "auto",
//       .dtype = pagejit::DataType::kBFloat16,
//       .num_seqs = num_seqs,
//       .num_heads = 32,
//       .head_size = 128,
//       .max_num_blocks_per_seq = max_num_blocks_per_seq,
//   };
//   pagejit::Status status = pagejit::paged_attention_v1(attention, args, stream);
//
// What differs from vLLM's:
// - Nothing is thrown: a call that cannot be served returns a sentence.
// - v1 has no limit of about 58,000 tokens: scores are never kept for a whole sequence.
// - v2 splits sequences by the number of CTAs that keeps the GPU busy, not by 512 tokens, and
//   merges in the same launch. Its scratch is one workspace, kept from call to call, in place of
//   exp_sums, max_logits and tmp_out, which this library does not have: no call writes them.
// - There is no choice to make between the two: v2 on a batch that fills the GPU does not split,
//   and is then v1. v1 is for callers without a workspace.
// - k_scale and v_scale are not looked at where K and V have no scale; query heads follow each
// other.
// - K and V keep their values where vLLM rounds what it has scaled to the query's type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "pagejit/engine.h"

namespace pagejit {

// The parameters of both, by vLLM's names and in vLLM's order; then what vLLM takes from its
// tensors. Pointers are device pointers; strides count elements.
struct PagedAttentionArgs {
  // [num_seqs, num_heads, head_size], contiguous, 16-byte aligned, of dtype.
  void* out = nullptr;
  // v2 only, in place of exp_sums, max_logits and tmp_out: PagedAttention::workspace_bytes() bytes,
  // 256-byte aligned, initialised once by PagedAttention::init_workspace(). One stream at a time.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  // [num_seqs, num_heads, head_size], 16-byte aligned, of dtype: rows q_stride apart.
  const void* query = nullptr;
  // [num_blocks, num_kv_heads, head_size / x, block_size, x] with 16 bytes in x elements, and
  // [num_blocks, num_kv_heads, head_size, block_size], 16-byte aligned; blocks and heads of both
  // kv_block_stride and kv_head_stride apart.
  const void* key_cache = nullptr;
  const void* value_cache = nullptr;
  int num_kv_heads = 0;
  float scale = 0;                        // of the softmax, finite
  const int32_t* block_tables = nullptr;  // [num_seqs, max_num_blocks_per_seq], contiguous
  const int32_t* seq_lens = nullptr;      // [num_seqs]; 0 gives out = 0
  int block_size = 16;                    // tokens: a multiple of 8 in [8, 65536]
  // What seq_lens holds at most; only steers the splits. 0: max_num_blocks_per_seq * block_size.
  int max_seq_len = 0;
  const float* alibi_slopes = nullptr;  // [num_heads]; null: no ALiBi
  // The elements of K and V: "auto" (of dtype), "float16", "bfloat16", "fp8" or "fp8_e4m3", and
  // "fp8_e5m2". vLLM takes float16 and bfloat16 for auto; here they are what they say.
  std::string_view kv_cache_dtype = "auto";
  // f32 [1] each, where K and V have 8 bits: a value is its code's times the scale.
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
  // Block-sparse attention where blocksparse_vert_stride > 1; else the other four are not looked
  // at. See BlockSparseArgs (launch.h), which has the rule and the limits.
  int tp_rank = 0;
  int blocksparse_local_blocks = 0;
  int blocksparse_vert_stride = 0;
  int blocksparse_block_size = 64;
  int blocksparse_head_sliding_step = 0;

  // Of query and out: f16, bf16 or f32.
  DataType dtype = DataType::kBFloat16;
  int num_seqs = 0;   // [0, 65535]; with 0 nothing is launched
  int num_heads = 0;  // query heads: 1 to 128 times num_kv_heads
  int head_size = 0;  // as KernelSpec; a multiple of x
  int max_num_blocks_per_seq = 0;
  // q_stride a multiple of 8, the others of x. 0: as if contiguous, which is num_heads * head_size,
  // num_kv_heads * head_size * block_size and head_size * block_size.
  int64_t q_stride = 0;
  int64_t kv_block_stride = 0;
  int64_t kv_head_stride = 0;
};

// The kernel that serves a call, to be precompiled or looked at. Only these fields are used: dtype,
// kv_cache_dtype, num_heads, num_kv_heads, head_size, block_size, whether alibi_slopes is null, and
// whether blocksparse_vert_stride is above 1. kInvalidArgument, kUnsupported.
PAGEJIT_EXPORT Result<KernelSpec> paged_attention_spec(const PagedAttentionArgs& args);

class PagedAttention;

// Enqueue one launch on `stream`. kInvalidArgument and kUnsupported name the parameter; kWorkspace
// (v2); what Engine::prepare() returns where the kernel is not there yet; kDriverError.

// Each sequence and KV head by one CTA, however long.
PAGEJIT_EXPORT Status paged_attention_v1(PagedAttention& attention, const PagedAttentionArgs& args,
                                         Stream stream);
// Long sequences of few heads by several CTAs, by way of the workspace.
PAGEJIT_EXPORT Status paged_attention_v2(PagedAttention& attention, const PagedAttentionArgs& args,
                                         Stream stream);

// The prepared kernels of one engine in one CUDA context: that which is current in all calls. A
// call whose kernel is not there yet prepares it, which may compile; prepare() does so ahead, and
// then no call compiles, locks or allocates. Kernels stay as long as this does.
class PAGEJIT_EXPORT PagedAttention {
 public:
  // Keeps the engine alive.
  explicit PagedAttention(std::shared_ptr<Engine> engine);
  ~PagedAttention();
  PagedAttention(const PagedAttention&) = delete;
  PagedAttention& operator=(const PagedAttention&) = delete;

  // Makes the kernel of paged_attention_spec(args) ready. To be called before a stream is captured:
  // a call on a stream that is being captured prepares nothing and is kDenied.
  // As Engine::prepare().
  Status prepare(const PagedAttentionArgs& args);

  // Bytes of workspace for any number and lengths of sequences with the kernel of `args`, a few MB.
  // Who uses several kernels on one stream takes the greatest. Prepares the kernel.
  Result<size_t> workspace_bytes(const PagedAttentionArgs& args);

  // Enqueues the one-time initialisation of a workspace. A kernel must have been prepared, else
  // kInvalidArgument. As Kernel::workspace_init().
  Status init_workspace(void* workspace, size_t workspace_bytes, Stream stream);

 private:
  friend Status paged_attention_v1(PagedAttention&, const PagedAttentionArgs&, Stream);
  friend Status paged_attention_v2(PagedAttention&, const PagedAttentionArgs&, Stream);
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagejit
