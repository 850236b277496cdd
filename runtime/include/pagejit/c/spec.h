// pagejit_kernel_spec: what is asked of an attention kernel, only what changes its code.
// Everything that changes from call to call is a launch argument (attention.h). Thread-safety:
// plain values.
#pragma once

#include "pagejit/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// How many query tokens the sequences of a launch have.
enum pagejit_query_lengths {
  PAGEJIT_QUERIES_ONE = 0,  // one each: decode
  PAGEJIT_QUERIES_FEW =
      1,  // any numbers, 0 among them, mostly a few: speculative decode, decode in a mixed batch
  PAGEJIT_QUERIES_MANY = 2,  // any numbers, mostly many: prefill, chunked prefill
  // Any numbers, mostly those of several sequences over KV tokens that they share (cascade.h). As
  // few reads of the keys as registers allow: the tallest tiles of rows; and each tile is split.
  PAGEJIT_QUERIES_SHARED = 3,
};

// Which keys a query token sees where there may be several; the last query token of a sequence
// stands at its last KV token.
enum pagejit_causality {
  PAGEJIT_CAUSALITY_NONE = 0,          // all keys of the sequence
  PAGEJIT_CAUSALITY_CAUSAL = 1,        // those up to its own position
  PAGEJIT_CAUSALITY_PER_SEQUENCE = 2,  // one or the other, by a flag per sequence
};

// How the KV tokens of a sequence are found.
enum pagejit_kv_table {
  PAGEJIT_KV_TABLE_BLOCKS =
      0,  // pagejit_attention_args.block_table, a row per sequence, and seq_lens
  PAGEJIT_KV_TABLE_CSR =
      1,  // kv_indptr, kv_indices, kv_last_block_len: rows of any length, one by one
  PAGEJIT_KV_TABLE_CONTIGUOUS =
      2,  // kv_start_loc: no blocks, the tokens of all sequences follow each other
  // pagejit_attention_args.token_lists: each query token has a list of the tokens it sees (sparse
  // MLA), by their slots in the cache or by their positions in the sequence.
  PAGEJIT_KV_TABLE_SLOTS = 3,
  PAGEJIT_KV_TABLE_POSITIONS = 4,
};

typedef struct pagejit_kernel_spec {
  size_t struct_size;
  int32_t queries;  // PAGEJIT_QUERIES_*
  int32_t q_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*
  // f16, bf16, f32, fp8_e4m3, fp8_e5m2, or int8 or int4 with token_scales. Those of 8 and 4 bits
  // have scales (pagejit_attention_args.k_scale) and are computed in f16; with f16 or bf16,
  // q_dtype is the same or f32, with f32 it is f32. q_dtype may be fp8_e4m3 where this has 8 or 4
  // bits. f32 keeps the accuracy of float32 throughout, at several times the instructions, and
  // needs sm_80.
  int32_t kv_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*
  // f16, bf16, f32, or fp8_e4m3 with a scale (pagejit_attention_args.out_scale), whatever the
  // others are.
  int32_t out_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*
  // Elements per head of q and K, and of V and out unless head_size_v says otherwise: a multiple
  // of 8 in [8, 256], or 512; with a head_size_v also 576. At most 256 where kv_dtype is f32.
  // With latent a multiple of 16 in [16, 576].
  int32_t head_size;  // = 128
  // Elements per head of V and out: 0 or head_size for the same, 128 where head_size is 192, 512
  // where it is 576. With latent any multiple of 16 up to head_size and 512.
  int32_t head_size_v;
  int32_t block_size;  // = 16; tokens per KV block: [1, 65536]
  int32_t group_size;  // = 1; query heads per KV head: [1, 128]
  // Must be PAGEJIT_CAUSALITY_NONE where queries is PAGEJIT_QUERIES_ONE: a single query token
  // sees all keys.
  int32_t causality;  // PAGEJIT_CAUSALITY_*
  // PAGEJIT_KV_TABLE_CONTIGUOUS needs block_size 1; PAGEJIT_KV_TABLE_SLOTS and
  // PAGEJIT_KV_TABLE_POSITIONS need latent, and queries to be one, since each query token has a
  // list of its own, however many its sequence has.
  int32_t kv_table;  // PAGEJIT_KV_TABLE_*
  // PAGEJIT_KV_LAYOUT_VLLM needs block_size to be a multiple of 8, and head_size of x; not with
  // int4. PAGEJIT_KV_LAYOUT_DS_MLA needs latent, head_size 576, head_size_v 512, kv_dtype
  // fp8_e4m3 and q_dtype bf16, and has no scales but those in its rows. Products with codes are
  // computed in f16, the rotated part and V in bf16.
  int32_t kv_layout;  // PAGEJIT_KV_LAYOUT_*
  // V is the first head_size_v elements of K's rows, as in the cache of multi-head latent
  // attention (MLA), whose rows are a latent vector of kv_lora_rank elements (head_size_v) and
  // the qk_rope_head_dim rotated ones (the rest of head_size): one KV head, all query heads in
  // its group. A row is read once for both. The result is in the latent space. From sm_80 on;
  // f16, bf16, fp8_e4m3 or fp8_e5m2 in rows; not with token_scales, custom_mask or block_sparse.
  int32_t latent;  // 0 or 1
  // K and V have a scale for each token and KV head; kv_dtype has 8 or 4 bits, kv_layout is
  // PAGEJIT_KV_LAYOUT_ROWS.
  int32_t token_scales;  // 0 or 1
  // What the pointers and strides of K and V are multiples of, in bytes: 16, 8 or 4. Rows are
  // copied by as many bytes at a time, as far as these divide their size; 4 takes four times the
  // instructions of 16. For rows with their scales in line: their own bytes and 4 from one to the
  // next.
  int32_t kv_alignment;  // = 16
  // 0 or 1; a sliding window: pagejit_attention_args.window_left and window_right hold
  int32_t window;
  int32_t chunked;  // 0 or 1; chunked-local attention: pagejit_attention_args.chunk_size holds
  // 0 or 1; a bit for each query token and key, pagejit_attention_args.custom_mask
  int32_t custom_mask;
  // Query tokens in a range of positions see all of it,
  // pagejit_attention_args.bidirectional_ranges. Must be false where block_sparse is set. Changes
  // nothing where all keys are seen anyway.
  int32_t bidirectional_ranges;  // 0 or 1
  int32_t block_sparse;  // 0 or 1; only some blocks of keys, pagejit_attention_args.block_sparse
  int32_t soft_cap;      // 0 or 1; scores become soft_cap * tanh(scores / soft_cap)
  // 0 or 1; a bias that is linear in the distance, by pagejit_attention_args.alibi_slopes
  int32_t alibi;
  // 0 or 1; a bias for the keys of a sequence's query tokens, pagejit_attention_args.qq_bias
  int32_t qq_bias;
  int32_t sinks;  // 0 or 1; one more logit per head without a value, pagejit_attention_args.sinks
  // A query token's result is the same to the bit whatever else is in the batch, wherever its
  // blocks lie, and whether it is alone or in a chunk of many: the KV tokens are divided at fixed
  // places, not by the number of CTAs. For all launches of a model, decode too, one spec with few
  // or many queries.
  int32_t batch_invariant;  // 0 or 1
  // 0 or 1; check every block id, length and the workspace on the device, report the first bad
  // one
  int32_t debug;
  // Programmatic dependent launch, from sm_90 on: the kernel may be brought onto the SMs while
  // the one before it in the stream still runs. It waits for that one's end before it touches
  // memory, and lets the next kernel come as early. A kernel of another library before it that is
  // launched in this way must wait likewise (griddepcontrol.wait).
  int32_t pdl;  // 0 or 1
} pagejit_kernel_spec;

// pagejit/pagejit.h has what _init does, and the rules of buffers.
PAGEJIT_API pagejit_status pagejit_kernel_spec_init(pagejit_kernel_spec* spec, size_t struct_size);

// Whether a field is illegal: the message has the field, its value and what is legal.
// INVALID_ARGUMENT, UNSUPPORTED (a later version may serve it).
PAGEJIT_API pagejit_status pagejit_kernel_spec_validate(const pagejit_kernel_spec* spec,
                                                        pagejit_error* error);
// Whether a kernel for it can be made for `target`: INVALID_ARGUMENT, UNSUPPORTED. Needs no
// compiler, no driver, no GPU.
PAGEJIT_API pagejit_status pagejit_kernel_spec_supports(const pagejit_kernel_spec* spec,
                                                        const pagejit_target* target,
                                                        pagejit_error* error);
// The line that identifies it, e.g. "decode q=bf16 kv=bf16 out=bf16 head_size=128 block_size=16
// group_size=4". Specs that mean the same have the same text; others differ.
PAGEJIT_API pagejit_status pagejit_kernel_spec_canonical_text(const pagejit_kernel_spec* spec,
                                                              char* buffer, size_t buffer_size,
                                                              size_t* length, pagejit_error* error);
// The inverse: fields may come in any order, absent ones keep their defaults, unknown or repeated
// ones are INVALID_ARGUMENT. The result is validated.
PAGEJIT_API pagejit_status pagejit_kernel_spec_parse(const char* text, pagejit_kernel_spec* spec,
                                                     pagejit_error* error);

// Elements per head of V and out; bytes that K and V of a token and KV head take in the cache,
// without the scales of token_scales.
PAGEJIT_API pagejit_status pagejit_kernel_spec_value_head_size(const pagejit_kernel_spec* spec,
                                                               int32_t* head_size_v,
                                                               pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_kernel_spec_kv_token_bytes(const pagejit_kernel_spec* spec,
                                                              int32_t* bytes, pagejit_error* error);

#ifdef __cplusplus
}
#endif
