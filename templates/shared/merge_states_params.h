// What host and device agree on for the kernel that merges partial attention results: its
// configuration (compile time) and its parameters (launch). Plain C++20 without includes but its
// neighbours.
#pragma once

#include "templates/shared/elements.h"

namespace pagejit_shared {

// States that are given one by one: their pointers are parameters of the launch.
constexpr int kMaxListedStates = 32;

// A thread owns a vector of one row (token, head); a CTA owns rows_per_cta() tokens of one head.
struct MergeStatesConfig {
  Element in;
  Element out;
  bool is_listed;  // a pointer per state; else one tensor with a stride
  int head_size;
  int vector_elements;  // of one thread's access; divides head_size
  int num_threads;
};

PAGEJIT_HOST_DEVICE constexpr int threads_per_row(const MergeStatesConfig& c) {
  const int vectors = c.head_size / c.vector_elements;
  return vectors < c.num_threads ? vectors : c.num_threads;
}
PAGEJIT_HOST_DEVICE constexpr int rows_per_cta(const MergeStatesConfig& c) {
  return c.num_threads / threads_per_row(c);
}

// Strides count elements.
struct MergeStatesParams {
  const void* v[kMaxListedStates];  // where not is_listed only the first
  const float* lse[kMaxListedStates];
  void* out;
  float* out_lse;          // null: not wanted
  const int* token_count;  // [1]: tokens from there on are not touched; null: all num_tokens are
  long long v_stride_state, v_stride_token, v_stride_head;
  long long lse_stride_state, lse_stride_token, lse_stride_head;
  long long out_stride_token, out_stride_head;
  long long out_lse_stride_token, out_lse_stride_head;
  long long num_tokens;
  long long num_merged_tokens;  // tokens from here on take the last state as it is
  int num_states;
};

}  // namespace pagejit_shared
