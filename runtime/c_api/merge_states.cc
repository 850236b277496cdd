#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

Status MergeStatesFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_merge_states_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_merge_states_spec");
  to->in_dtype = fields.enumerator("in_dtype", known->in_dtype, DataType::kInt4);
  to->out_dtype = fields.enumerator("out_dtype", known->out_dtype, DataType::kInt4);
  to->head_size = known->head_size;
  to->listed = fields.flag("listed", known->listed);
  to->pdl = fields.flag("pdl", known->pdl);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_merge_states_spec MergeStatesFamily::to_c(const Spec& from) {
  pagejit_merge_states_spec to = {};
  to.struct_size = sizeof to;
  to.in_dtype = static_cast<int32_t>(from.in_dtype);
  to.out_dtype = static_cast<int32_t>(from.out_dtype);
  to.head_size = from.head_size;
  to.listed = from.listed ? 1 : 0;
  to.pdl = from.pdl ? 1 : 0;
  return to;
}

Status MergeStatesFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_merge_states_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_merge_states_args");
  to->v = known->v;
  to->lse = known->lse;
  to->v_stride_state = known->v_stride_state;
  to->lse_stride_state = known->lse_stride_state;
  to->v_stride_token = known->v_stride_token;
  to->v_stride_head = known->v_stride_head;
  to->lse_stride_token = known->lse_stride_token;
  to->lse_stride_head = known->lse_stride_head;
  to->out = known->out;
  to->out_stride_token = known->out_stride_token;
  to->out_stride_head = known->out_stride_head;
  to->out_lse = known->out_lse;
  to->out_lse_stride_token = known->out_lse_stride_token;
  to->out_lse_stride_head = known->out_lse_stride_head;
  to->num_states = known->num_states;
  to->num_tokens = known->num_tokens;
  to->num_heads = known->num_heads;
  to->num_merged_tokens = known->num_merged_tokens;
  to->token_count = known->token_count;
  fields.reserved(known->reserved | known->reserved1);
  to->list = known->states;
  return fields.status();
}

void MergeStatesArgsWithRoom::read_list() {
  if (list == nullptr) return;
  const int count = std::clamp(num_states, 0, kMaxListedStates);
  for (int i = 0; i < count; ++i) {
    new (&room.elements[i]) MergeState{.v = list[i].v, .lse = list[i].lse};
  }
  states = room.elements;
}

pagejit_merge_states_args MergeStatesFamily::default_args() {
  const MergeStatesArgs defaults;
  pagejit_merge_states_args args = {};
  args.struct_size = sizeof args;
  args.num_merged_tokens = defaults.num_merged_tokens;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(MergeStatesFamily, pagejit_merge_states_spec, pagejit_merge_states_args)
PAGEJIT_C_KERNEL_FUNCTIONS(MergeStatesFamily, pagejit_merge_states_spec,
                           pagejit_merge_states_kernel, pagejit_merge_states_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(MergeStatesFamily, pagejit_merge_states_spec,
                                  pagejit_merge_states_kernel)
PAGEJIT_C_GET_SPEC_FUNCTION(MergeStatesFamily, pagejit_merge_states_spec,
                            pagejit_merge_states_kernel)
