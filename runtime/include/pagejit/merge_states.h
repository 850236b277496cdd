// Merging partial attention results: the same queries over different keys, each with its lse, as
// split sequences, shared prefixes (cascade) and context-parallel ranks give them. State i counts
// with weight exp(lse_i) / sum of exp(lse_j). Thread-safety: specs and arguments are plain values;
// a handle may be launched from any number of threads at once.
#pragma once

#include <cstdint>
#include <string>

#include "pagejit/export.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/spec.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

class MergeStatesKernel;

// The most states of a listed launch.
inline constexpr int kMaxListedStates = 32;

// Only what changes the code.
struct PAGEJIT_EXPORT MergeStatesSpec {
  using Handle = MergeStatesKernel;

  DataType in_dtype = DataType::kBFloat16;   // of the states' v: f16, bf16 or f32
  DataType out_dtype = DataType::kBFloat16;  // f16, bf16 or f32, whatever in_dtype is
  int head_size = 128;                       // elements per row: [1, 4096]
  // Each state has its own pointers (MergeStatesArgs::states); else all lie in one tensor.
  bool listed = false;
  bool pdl = false;  // programmatic dependent launch, as in KernelSpec

  bool operator==(const MergeStatesSpec&) const = default;
};

// The canonical text is e.g. "merge_states in=bf16 out=bf16
// head_size=128", with "listed=1" and "pdl=1" where they are set.
template <>
PAGEJIT_EXPORT Status validate(const MergeStatesSpec& spec);
template <>
PAGEJIT_EXPORT Status supports(const MergeStatesSpec& spec, const Target& target);
template <>
PAGEJIT_EXPORT std::string canonical_text(const MergeStatesSpec& spec);

// The pointers of one state; its strides are those of all.
struct MergeState {
  const void* v = nullptr;
  const float* lse = nullptr;
};

// Device pointers but for `states`; strides count elements. Rows of v and out are contiguous. Where
// vectors of several elements are read (16 bytes of the wider type, or less, as head_size divides),
// pointers and strides of v and out must be multiples of a vector; launch() says of how much.
struct MergeStatesArgs {
  // Where the spec is not listed: v [num_states, num_tokens, num_heads, head_size] and lse
  // [num_states, num_tokens, num_heads], by the strides below.
  const void* v = nullptr;
  const float* lse = nullptr;
  int64_t v_stride_state = 0;
  int64_t lse_stride_state = 0;
  // Where it is: num_states (at most kMaxListedStates) pairs in host memory, read by launch() and
  // not kept.
  const MergeState* states = nullptr;

  int64_t v_stride_token = 0;
  int64_t v_stride_head = 0;
  // Natural logarithms. -inf, or +inf, says that a state saw no keys: what its v holds is not used.
  int64_t lse_stride_token = 0;
  int64_t lse_stride_head = 0;

  // [num_tokens, num_heads, head_size]. May be the v of a state, where types and strides agree. A
  // row that has keys in no state is 0, its lse -inf.
  void* out = nullptr;
  int64_t out_stride_token = 0;
  int64_t out_stride_head = 0;
  // Optional f32 [num_tokens, num_heads]. Null: not written.
  float* out_lse = nullptr;
  int64_t out_lse_stride_token = 0;
  int64_t out_lse_stride_head = 0;

  int32_t num_states = 0;  // at least 1
  int64_t num_tokens = 0;  // 0 launches nothing
  int32_t num_heads = 0;
  // Tokens from this one on take the last state alone: they had no prefix to merge. Negative: all
  // tokens are merged.
  int64_t num_merged_tokens = -1;
  // Optional int32 [1]: tokens from *token_count on are neither read nor written, as padded graphs
  // have them. Null: all num_tokens are.
  const int32_t* token_count = nullptr;
};

// A launchable merge on one device, made by Engine::prepare().
class PAGEJIT_EXPORT MergeStatesKernel : public KernelHandle {
 public:
  // Enqueues one launch on `stream`. Never allocates, locks or reads device memory on success; safe
  // during stream capture. kInvalidArgument, kDriverError.
  Status launch(const MergeStatesArgs& args, Stream stream) const;

  // Of an empty handle: default values.
  const MergeStatesSpec& spec() const;
};

}  // namespace pagejit
