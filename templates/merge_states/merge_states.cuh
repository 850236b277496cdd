// Merges partial results of the same queries over different keys: with weights exp(lse_i - max lse)
// / sum, as if one softmax had seen all keys.
//
// Grid: x = rows_per_cta() tokens, y = head. A thread owns one vector of a row and reads the row's
// lse values itself; threads of a row read the same ones, so all but the first come from L1.
#pragma once

using pagejit_shared::MergeStatesConfig;
using pagejit_shared::MergeStatesParams;

constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;
constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000u);

// The states of one row (token, head).
template <MergeStatesConfig C>
struct RowStates {
  const MergeStatesParams& params;
  int64_t v_offset;  // elements, from the state's start
  int64_t lse_offset;
  int state_begin;
  int state_end;

  PAGEJIT_DEVICE RowStates(const MergeStatesParams& p, int64_t token, int head)
      : params(p),
        v_offset(token * p.v_stride_token + head * p.v_stride_head),
        lse_offset(token * p.lse_stride_token + head * p.lse_stride_head),
        state_begin(token < p.num_merged_tokens ? 0 : p.num_states - 1),
        state_end(p.num_states) {}

  // A state that says +inf saw no keys, like one that says -inf.
  PAGEJIT_DEVICE float lse(int state) const {
    const float* at = C.is_listed ? params.lse[state] + lse_offset
                                  : params.lse[0] + state * params.lse_stride_state + lse_offset;
    const float value = dev::load_global_nc(at);
    return value == kInfinity ? -kInfinity : value;
  }

  PAGEJIT_DEVICE void load(int state, int element, float (&values)[C.vector_elements]) const {
    const void* base = C.is_listed ? params.v[state]
                                   : element_at<C.in>(params.v[0], state * params.v_stride_state);
    ElementBits<C.in, C.vector_elements> bits;
    bits.load_nc(element_at<C.in>(base, v_offset + element));
    widen<C.in, C.vector_elements>(bits, values);
  }
};

// One vector of the merged row, not normalised.
template <MergeStatesConfig C>
struct MergedVector {
  float max = -kInfinity;
  float sum = 0.0f;
  float values[C.vector_elements] = {};

  PAGEJIT_DEVICE MergedVector(const RowStates<C>& states, int element) {
    for (int i = states.state_begin; i < states.state_end; ++i) {
      const float lse = states.lse(i);
      // dev::max2 would lose a NaN.
      if (!(lse <= max)) max = lse;
    }
    if (max == -kInfinity) return;
    for (int i = states.state_begin; i < states.state_end; ++i) {
      const float weight = dev::exp2_approx((states.lse(i) - max) * kLog2E);
      // What a state without keys holds may be anything; 0 * NaN would be NaN.
      if (weight == 0.0f) continue;
      sum += weight;
      float v[C.vector_elements];
      states.load(i, element, v);
#pragma unroll
      for (int e = 0; e < C.vector_elements; ++e) values[e] += weight * v[e];
    }
  }

  PAGEJIT_DEVICE void normalise() {
    const float scale = sum == 0.0f ? 0.0f : dev::rcp_approx(sum);
#pragma unroll
    for (int e = 0; e < C.vector_elements; ++e) values[e] *= scale;
  }

  PAGEJIT_DEVICE float lse() const {
    return max == -kInfinity ? max : max + dev::log2_approx(sum) * kLn2;
  }
};

template <MergeStatesConfig C>
PAGEJIT_DEVICE void merge_states(const MergeStatesParams& params) {
  constexpr int kThreadsPerRow = pagejit_shared::threads_per_row(C);
  constexpr int kRows = pagejit_shared::rows_per_cta(C);
  const int row = dev::thread_idx() / kThreadsPerRow;
  const int first_vector = dev::thread_idx() % kThreadsPerRow;
  const int64_t token = static_cast<int64_t>(dev::block_idx_x()) * kRows + row;
  if (row >= kRows || token >= params.num_tokens) return;
  if (params.token_count != nullptr && token >= dev::load_global_nc(params.token_count)) return;

  const int head = dev::block_idx_y();
  const RowStates<C> states(params, token, head);
  const int64_t out_row = token * params.out_stride_token + head * params.out_stride_head;
  for (int element = first_vector * C.vector_elements; element < C.head_size;
       element += kThreadsPerRow * C.vector_elements) {
    MergedVector<C> merged(states, element);
    merged.normalise();
    narrow<C.out, C.vector_elements>(merged.values)
        .store(element_at<C.out>(params.out, out_row + element));
    if (element == 0 && params.out_lse != nullptr) {
      dev::store_global(params.out_lse + token * params.out_lse_stride_token +
                            head * params.out_lse_stride_head,
                        merged.lse());
    }
  }
}
