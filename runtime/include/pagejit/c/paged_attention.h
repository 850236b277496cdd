// vLLM's paged_attention_v1 and paged_attention_v2 under their names, with their parameters, over
// their pair of cache layouts: decode, one query token per sequence. What differs from vLLM's
// stands in pagejit/paged_attention.h. Thread-safety: structs are plain values; a handle may be
// used from any number of threads at once.
#pragma once

#include "pagejit/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// The parameters of both, by vLLM's names and in vLLM's order; then what vLLM takes from its
// tensors. Pointers are device pointers; strides count elements.
typedef struct pagejit_paged_attention_args {
  size_t struct_size;
  // [num_seqs, num_heads, head_size], contiguous, 16-byte aligned, of dtype.
  void* out;
  // v2 only, in place of exp_sums, max_logits and tmp_out:
  // pagejit_paged_attention_workspace_bytes() bytes, 256-byte aligned, initialised once by
  // pagejit_paged_attention_init_workspace(). One stream at a time.
  void* workspace;
  size_t workspace_bytes;
  // [num_seqs, num_heads, head_size], 16-byte aligned, of dtype: rows q_stride apart.
  const void* query;
  // [num_blocks, num_kv_heads, head_size / x, block_size, x] with 16 bytes in x elements, and
  // [num_blocks, num_kv_heads, head_size, block_size], 16-byte aligned; blocks and heads of both
  // kv_block_stride and kv_head_stride apart.
  const void* key_cache;
  const void* value_cache;
  int32_t num_kv_heads;
  float scale;                  // of the softmax, finite
  const int32_t* block_tables;  // [num_seqs, max_num_blocks_per_seq], contiguous
  const int32_t* seq_lens;      // [num_seqs]; 0 gives out = 0
  int32_t block_size;           // = 16; tokens: a multiple of 8 in [8, 65536]
  // What seq_lens holds at most; only steers the splits. 0: max_num_blocks_per_seq * block_size.
  int32_t max_seq_len;
  const float* alibi_slopes;  // [num_heads]; null: no ALiBi
  // The elements of K and V: "auto" (of dtype), "float16", "bfloat16", "fp8" or "fp8_e4m3", and
  // "fp8_e5m2". vLLM takes float16 and bfloat16 for auto; here they are what they say.
  const char* kv_cache_dtype;  // = "auto"
  // f32 [1] each, where K and V have 8 bits: a value is its code's times the scale.
  const float* k_scale;
  const float* v_scale;
  // Block-sparse attention where blocksparse_vert_stride > 1; else the other four are not looked
  // at. See pagejit_block_sparse_args (attention.h), which has the limits; pagejit/launch.h has the
  // rule.
  int32_t tp_rank;
  int32_t blocksparse_local_blocks;
  int32_t blocksparse_vert_stride;
  int32_t blocksparse_block_size;  // = 64
  int32_t blocksparse_head_sliding_step;

  // Of query and out: f16, bf16 or f32.
  int32_t dtype;      // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*
  int32_t num_seqs;   // [0, 65535]; with 0 nothing is launched
  int32_t num_heads;  // query heads: 1 to 128 times num_kv_heads
  int32_t head_size;  // as pagejit_kernel_spec; a multiple of x
  int32_t max_num_blocks_per_seq;
  // q_stride a multiple of 8, the others of x. 0: as if contiguous, which is num_heads *
  // head_size, num_kv_heads * head_size * block_size and head_size * block_size.
  int64_t q_stride;
  int64_t kv_block_stride;
  int64_t kv_head_stride;
} pagejit_paged_attention_args;

// The prepared kernels of one engine in one CUDA context: that which is current in all calls. A
// call whose kernel is not there yet prepares it, which may compile; prepare does so ahead, and
// then no call compiles, locks or allocates. Kernels stay as long as this does.
typedef struct pagejit_paged_attention pagejit_paged_attention;  // a handle

PAGEJIT_API pagejit_status pagejit_paged_attention_args_init(pagejit_paged_attention_args* args,
                                                             size_t struct_size);

// The kernel that serves a call, to be precompiled or looked at. Only these fields are used:
// dtype, kv_cache_dtype, num_heads, num_kv_heads, head_size, block_size, whether alibi_slopes is
// null, and whether blocksparse_vert_stride is above 1. INVALID_ARGUMENT, UNSUPPORTED.
PAGEJIT_API pagejit_status pagejit_paged_attention_spec(const pagejit_paged_attention_args* args,
                                                        pagejit_kernel_spec* spec,
                                                        pagejit_error* error);

// It keeps the engine alive (pagejit_engine_destroy()).
PAGEJIT_API pagejit_status pagejit_paged_attention_create(pagejit_engine* engine,
                                                          pagejit_paged_attention** attention,
                                                          pagejit_error* error);
// Null is legal.
PAGEJIT_API pagejit_status pagejit_paged_attention_destroy(pagejit_paged_attention* attention,
                                                           pagejit_error* error);
// Makes the kernel of pagejit_paged_attention_spec(args) ready; to be called before a stream is
// captured: a call on a stream that is being captured prepares nothing and is DENIED. As
// pagejit_kernel_prepare().
PAGEJIT_API pagejit_status pagejit_paged_attention_prepare(pagejit_paged_attention* attention,
                                                           const pagejit_paged_attention_args* args,
                                                           pagejit_error* error);
// Bytes of workspace for any number and lengths of sequences with the kernel of `args`, a few MB.
// Prepares the kernel, and returns what that does.
PAGEJIT_API pagejit_status pagejit_paged_attention_workspace_bytes(
    pagejit_paged_attention* attention, const pagejit_paged_attention_args* args, size_t* bytes,
    pagejit_error* error);
// Enqueues the one-time initialisation of a workspace. A kernel must have been prepared, else
// INVALID_ARGUMENT. As pagejit_kernel_workspace_init().
PAGEJIT_API pagejit_status pagejit_paged_attention_init_workspace(
    pagejit_paged_attention* attention, void* workspace, size_t workspace_bytes,
    pagejit_stream stream, pagejit_error* error);

// Enqueue one launch on `stream`. v1: each sequence and KV head by one CTA, however long. v2: long
// sequences of few heads by several CTAs, by way of the workspace. INVALID_ARGUMENT and UNSUPPORTED
// name the parameter; WORKSPACE (v2); what pagejit_kernel_prepare() returns where the kernel is not
// there yet; DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_paged_attention_v1(pagejit_paged_attention* attention,
                                                      const pagejit_paged_attention_args* args,
                                                      pagejit_stream stream, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_paged_attention_v2(pagejit_paged_attention* attention,
                                                      const pagejit_paged_attention_args* args,
                                                      pagejit_stream stream, pagejit_error* error);

#ifdef __cplusplus
}
#endif
