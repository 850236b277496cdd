
#include <algorithm>

#include "pagejit/merge_states.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/engine/merge_states_launch.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

using Constants = pagejit_shared::MergeStatesConfig;
using Params = pagejit_shared::MergeStatesParams;

static_assert(kMaxListedStates == pagejit_shared::kMaxListedStates);

const MergeStatesConfig& config_of(const LoadedKernel& kernel) {
  return *std::get_if<MergeStatesConfig>(&kernel.parts.config);
}

Status check_state(const Constants& c, const char* v_name, const void* v, const char* lse_name,
                   const float* lse) {
  const int vector_bytes = c.vector_elements * pagejit_shared::element_bytes(c.in);
  Status status = check_pointer(v_name, v, static_cast<uintptr_t>(vector_bytes));
  if (status) status = check_pointer(lse_name, lse, alignof(float));
  return status;
}

Status check_states(const Constants& c, const MergeStatesArgs& args) {
  if (!c.is_listed) {
    Status status = check_state(c, "v", args.v, "lse", args.lse);
    if (status) status = check_stride("v_stride_state", args.v_stride_state, c.vector_elements);
    return status;
  }
  if (args.states == nullptr) return invalid("states is null: must point to num_states states");
  for (int i = 0; i < args.num_states; ++i) {
    const MergeState& state = args.states[i];
    Status status = check_state(c, "v", state.v, "lse", state.lse);
    if (!status) return status.with_context(format("states[{}]", i));
  }
  return {};
}

Status check_args(const Constants& c, const MergeStatesArgs& args) {
  const int out_bytes = c.vector_elements * pagejit_shared::element_bytes(c.out);
  Status status =
      check_count("num_states", args.num_states, 1, c.is_listed ? kMaxListedStates : INT32_MAX);
  if (status) status = check_count("num_heads", args.num_heads, 1, kMaxGridYZ);
  if (status) {
    const int64_t most = kMaxGridX * pagejit_shared::rows_per_cta(c);
    status = check_count("num_tokens", args.num_tokens, 0, most);
  }
  if (status) status = check_states(c, args);
  if (status) status = check_pointer("out", args.out, static_cast<uintptr_t>(out_bytes));
  if (status && misaligned(args.out_lse, alignof(float))) {
    status = bad_pointer("out_lse", args.out_lse, alignof(float));
  }
  if (status && misaligned(args.token_count, alignof(int32_t))) {
    status = bad_pointer("token_count", args.token_count, alignof(int32_t));
  }
  if (status) status = check_stride("v_stride_token", args.v_stride_token, c.vector_elements);
  if (status) status = check_stride("v_stride_head", args.v_stride_head, c.vector_elements);
  if (status) status = check_stride("out_stride_token", args.out_stride_token, c.vector_elements);
  if (status) status = check_stride("out_stride_head", args.out_stride_head, c.vector_elements);
  return status;
}

Params make_params(const Constants& c, const MergeStatesArgs& args) {
  Params params = {};
  params.v[0] = args.v;
  params.lse[0] = args.lse;
  if (c.is_listed) {
    for (int i = 0; i < args.num_states; ++i) {
      params.v[i] = args.states[i].v;
      params.lse[i] = args.states[i].lse;
    }
  }
  params.out = args.out;
  params.out_lse = args.out_lse;
  params.token_count = args.token_count;
  params.v_stride_state = args.v_stride_state;
  params.v_stride_token = args.v_stride_token;
  params.v_stride_head = args.v_stride_head;
  params.lse_stride_state = args.lse_stride_state;
  params.lse_stride_token = args.lse_stride_token;
  params.lse_stride_head = args.lse_stride_head;
  params.out_stride_token = args.out_stride_token;
  params.out_stride_head = args.out_stride_head;
  params.out_lse_stride_token = args.out_lse_stride_token;
  params.out_lse_stride_head = args.out_lse_stride_head;
  params.num_tokens = args.num_tokens;
  params.num_merged_tokens = args.num_merged_tokens < 0 ? args.num_tokens : args.num_merged_tokens;
  params.num_states = args.num_states;
  return params;
}

}  // namespace

Status check_merge(const LoadedKernel& kernel, const MergeStatesArgs& args) {
  return check_args(config_of(kernel).constants, args);
}

Status launch_checked_merge(const LoadedKernel& kernel, const MergeStatesArgs& args,
                            Stream stream) {
  const Constants& c = config_of(kernel).constants;
  Params params = make_params(c, args);
  const int64_t rows = pagejit_shared::rows_per_cta(c);
  const Grid grid{.x = static_cast<unsigned>((args.num_tokens + rows - 1) / rows),
                  .y = static_cast<unsigned>(args.num_heads)};
  return kernel.launch(grid, &params, stream);
}

Status MergeStatesKernel::launch(const MergeStatesArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&]() -> Status {
    if (args.num_tokens == 0) return {};
    if (Status status = check_merge(*loaded_, args); !status) return status;
    return launch_checked_merge(*loaded_, args, stream);
  });
}

const MergeStatesSpec& MergeStatesKernel::spec() const {
  static const MergeStatesSpec empty;
  return loaded_ != nullptr ? config_of(*loaded_).spec : empty;
}

}  // namespace pagejit
