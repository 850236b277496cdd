// Merging partial attention results: the same queries over different keys, each with its lse.
// State i counts with weight exp(lse_i) / sum of exp(lse_j). Thread-safety: structs are plain
// values; a handle may be used from any number of threads at once.
#pragma once

#include "pagejit/c/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// The most states of a listed launch.
#define PAGEJIT_MAX_LISTED_STATES 32

typedef struct pagejit_merge_states_spec {
  size_t struct_size;
  int32_t in_dtype;  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; of the states' v: f16, bf16 or f32
  // = PAGEJIT_DTYPE_BF16; PAGEJIT_DTYPE_*; f16, bf16 or f32, whatever in_dtype is
  int32_t out_dtype;
  int32_t head_size;  // = 128; elements per row: [1, 4096]
  // Each state has its own pointers (pagejit_merge_states_args.states); else all lie in one
  // tensor.
  int32_t listed;    // 0 or 1
  int32_t pdl;       // 0 or 1; programmatic dependent launch, as in pagejit_kernel_spec
  int32_t reserved;  // 0
} pagejit_merge_states_spec;

// The pointers of one state, device memory; its strides are those of all. Part of an array.
typedef struct pagejit_merge_state {
  const void* v;
  const float* lse;
} pagejit_merge_state;

// Device pointers but for `states`; strides count elements. Rows of v and out are contiguous;
// launch says where they must be aligned to a vector.
typedef struct pagejit_merge_states_args {
  size_t struct_size;
  // Where the spec is not listed: v [num_states, num_tokens, num_heads, head_size] and lse
  // [num_states, num_tokens, num_heads], by the strides below.
  const void* v;
  const float* lse;
  int64_t v_stride_state;
  int64_t lse_stride_state;
  // Where it is: num_states (at most PAGEJIT_MAX_LISTED_STATES) pairs in host memory, read by
  // launch and not kept.
  const pagejit_merge_state* states;

  int64_t v_stride_token;
  int64_t v_stride_head;
  // Natural logarithms. -inf, or +inf, says that a state saw no keys: what its v holds is not
  // used.
  int64_t lse_stride_token;
  int64_t lse_stride_head;

  // [num_tokens, num_heads, head_size]. May be the v of a state, where types and strides agree. A
  // row that has keys in no state is 0, its lse -inf.
  void* out;
  int64_t out_stride_token;
  int64_t out_stride_head;
  // Optional f32 [num_tokens, num_heads]. Null: not written.
  float* out_lse;
  int64_t out_lse_stride_token;
  int64_t out_lse_stride_head;

  int32_t num_states;  // at least 1
  int32_t reserved;    // 0
  int64_t num_tokens;  // 0 launches nothing
  int32_t num_heads;
  int32_t reserved1;  // 0
  // Tokens from this one on take the last state alone: they had no prefix to merge. Negative: all
  // tokens are merged.
  int64_t num_merged_tokens;  // = -1
  // Optional int32 [1]: tokens from *token_count on are neither read nor written, as padded
  // graphs have them. Null: all num_tokens are.
  const int32_t* token_count;
} pagejit_merge_states_args;

typedef struct pagejit_merge_states_kernel pagejit_merge_states_kernel;  // a handle

PAGEJIT_API pagejit_status pagejit_merge_states_spec_init(pagejit_merge_states_spec* spec,
                                                          size_t struct_size);
PAGEJIT_API pagejit_status pagejit_merge_states_args_init(pagejit_merge_states_args* args,
                                                          size_t struct_size);

// As those of a pagejit_kernel_spec (spec.h).
PAGEJIT_API pagejit_status pagejit_merge_states_spec_validate(const pagejit_merge_states_spec* spec,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_spec_supports(const pagejit_merge_states_spec* spec,
                                                              const pagejit_target* target,
                                                              pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_merge_states_spec_canonical_text(const pagejit_merge_states_spec* spec, char* buffer,
                                         size_t buffer_size, size_t* length, pagejit_error* error);

// As those of a pagejit_kernel (attention.h).
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_prepare(
    pagejit_engine* engine, const pagejit_merge_states_spec* spec, int32_t device,
    pagejit_stream stream, pagejit_merge_states_kernel** kernel, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_prepare_async(
    pagejit_engine* engine, const pagejit_merge_states_spec* spec, int32_t device,
    const pagejit_prepare_options* options, pagejit_pending** pending, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_wait(const pagejit_pending* pending,
                                                            pagejit_merge_states_kernel** kernel,
                                                            pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_precompile(
    pagejit_engine* engine, const pagejit_merge_states_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_render(const pagejit_engine* engine,
                                                              const pagejit_merge_states_spec* spec,
                                                              const pagejit_target* target,
                                                              char* buffer, size_t buffer_size,
                                                              size_t* length, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_merge_states_kernel_copy(const pagejit_merge_states_kernel* kernel,
                                 pagejit_merge_states_kernel** copy, pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_destroy(pagejit_merge_states_kernel* kernel,
                                                               pagejit_error* error);
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_get_info(
    const pagejit_merge_states_kernel* kernel, pagejit_kernel_info* info, pagejit_error* error);
PAGEJIT_API pagejit_status
pagejit_merge_states_kernel_get_spec(const pagejit_merge_states_kernel* kernel,
                                     pagejit_merge_states_spec* spec, pagejit_error* error);

// INVALID_ARGUMENT, DRIVER_ERROR.
PAGEJIT_API pagejit_status pagejit_merge_states_kernel_launch(
    const pagejit_merge_states_kernel* kernel, const pagejit_merge_states_args* args,
    pagejit_stream stream, pagejit_error* error);

#ifdef __cplusplus
}
#endif
