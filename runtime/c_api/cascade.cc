#include "runtime/c_api/family_functions.h"
#include "runtime/format.h"

namespace pagejit::c_api {
namespace {

Status read_level(const pagejit_cascade_level* from, CascadeLevel* to) {
  pagejit_cascade_level copy;
  Status refusal;
  const pagejit_cascade_level* known = open_struct("pagejit_cascade_level", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_cascade_level");
  to->query_start_loc = known->query_start_loc;
  to->num_seqs = known->num_seqs;
  to->block_table = known->block_table;
  to->block_table_stride = known->block_table_stride;
  to->max_blocks_per_seq = known->max_blocks_per_seq;
  to->seq_lens = known->seq_lens;
  to->kv_indptr = known->kv_indptr;
  to->kv_indices = known->kv_indices;
  to->kv_last_block_len = known->kv_last_block_len;
  to->kv_start_loc = known->kv_start_loc;
  to->max_seq_len = known->max_seq_len;
  to->num_splits = known->num_splits;
  fields.reserved(known->reserved | known->reserved1);
  return fields.status();
}

// What lies between the levels is the size of the first, which all have.
Status read_levels(const pagejit_cascade_args& from, CascadeArgsWithRoom* to) {
  const int count = std::clamp(from.num_levels, 0, kMaxCascadeLevels);
  const char* place = reinterpret_cast<const char*>(from.levels);
  for (int i = 0; i < count; ++i) {
    const auto* level = reinterpret_cast<const pagejit_cascade_level*>(place);
    if (level->struct_size != from.levels->struct_size) {
      return Status(StatusCode::kInvalidArgument,
                    format("levels[{}].struct_size {}: must be that of levels[0], {}", i,
                           level->struct_size, from.levels->struct_size));
    }
    CascadeLevel* converted = new (&to->room.elements[i]) CascadeLevel;
    if (Status s = read_level(level, converted); !s) return s.with_context(format("levels[{}]", i));
    place += level->struct_size;
  }
  to->levels = to->room.elements;
  return {};
}

}  // namespace

Status CascadeFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_cascade_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  return AttentionFamily::to_cpp(known->attention, &to->attention);
}

pagejit_cascade_spec CascadeFamily::to_c(const Spec& /*from*/) {
  pagejit_cascade_spec to = {};
  to.struct_size = sizeof to;
  return to;
}

Status CascadeFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_cascade_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_cascade_args");
  to->num_levels = known->num_levels;
  to->q = known->q;
  to->q_stride_token = known->q_stride_token;
  to->q_stride_head = known->q_stride_head;
  to->k_cache = known->k_cache;
  to->v_cache = known->v_cache;
  to->k_strides = c_api::to_cpp(known->k_strides);
  to->v_strides = c_api::to_cpp(known->v_strides);
  to->q_scale = known->q_scale;
  to->k_scale = known->k_scale;
  to->v_scale = known->v_scale;
  to->kv_scale_stride = known->kv_scale_stride;
  to->k_scale_strides = c_api::to_cpp(known->k_scale_strides);
  to->v_scale_strides = c_api::to_cpp(known->v_scale_strides);
  to->num_blocks = known->num_blocks;
  to->num_query_tokens = known->num_query_tokens;
  to->num_kv_heads = known->num_kv_heads;
  to->out = known->out;
  to->out_stride_token = known->out_stride_token;
  to->out_stride_head = known->out_stride_head;
  to->lse = known->lse;
  to->causal_flags = known->causal_flags;
  to->custom_mask = known->custom_mask;
  to->custom_mask_indptr = known->custom_mask_indptr;
  to->soft_cap = known->soft_cap;
  to->sinks = known->sinks;
  to->scale = known->scale;
  to->workspace = known->workspace;
  to->workspace_bytes = known->workspace_bytes;
  fields.reserved(known->reserved | known->reserved1 | known->reserved2);
  if (!fields.status() || known->levels == nullptr) return fields.status();
  return read_levels(*known, to);
}

pagejit_cascade_args CascadeFamily::default_args() {
  pagejit_cascade_args args = {};
  args.struct_size = sizeof args;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(CascadeFamily, pagejit_cascade_spec, pagejit_cascade_args)
PAGEJIT_C_KERNEL_FUNCTIONS(CascadeFamily, pagejit_cascade_spec, pagejit_cascade_kernel,
                           pagejit_cascade_args)
PAGEJIT_C_WORKSPACE_FUNCTIONS(CascadeFamily, pagejit_cascade_kernel)

using pagejit::Status;
using pagejit::c_api::AttentionFamily;
using pagejit::c_api::CascadeFamily;
using pagejit::c_api::check_optional_output;
using pagejit::c_api::check_output;
using pagejit::c_api::fill;
using pagejit::c_api::fill_optional;
using pagejit::c_api::MergeStatesFamily;
using pagejit::c_api::need;
using pagejit::c_api::number_of;
using pagejit::c_api::with_kernel;
using pagejit::c_api::with_spec;

pagejit_status pagejit_cascade_kernel_precompile(pagejit_engine* engine,
                                                 const pagejit_cascade_spec* spec,
                                                 const pagejit_target* target,
                                                 pagejit_kernel_info* prefix,
                                                 pagejit_kernel_info* suffix,
                                                 pagejit_kernel_info* merge, pagejit_error* error) {
  return pagejit::c_api::precompile<CascadeFamily>(engine, spec, target, error, prefix, suffix,
                                                   merge);
}

pagejit_status pagejit_cascade_kernel_get_info(const pagejit_cascade_kernel* kernel,
                                               pagejit_kernel_info* prefix,
                                               pagejit_kernel_info* suffix,
                                               pagejit_kernel_info* merge, pagejit_error* error) {
  return pagejit::c_api::get_info<CascadeFamily>(kernel, error, prefix, suffix, merge);
}

pagejit_status pagejit_cascade_kernel_get_spec(const pagejit_cascade_kernel* kernel,
                                               pagejit_cascade_spec* spec,
                                               pagejit_kernel_spec* attention,
                                               pagejit_error* error) {
  return with_kernel<CascadeFamily>(kernel, error, [&](const auto& handle) -> Status {
    if (Status s = check_output("pagejit_cascade_spec", spec); !s) return s;
    if (Status s = check_output("pagejit_kernel_spec", attention); !s) return s;
    fill(attention, AttentionFamily::to_c(handle.spec().attention));
    pagejit_cascade_spec filled = CascadeFamily::to_c(handle.spec());
    filled.attention = attention;
    fill(spec, filled);
    return {};
  });
}

pagejit_status pagejit_cascade_spec_parts(const pagejit_cascade_spec* spec,
                                          pagejit_kernel_spec* prefix, pagejit_kernel_spec* suffix,
                                          pagejit_merge_states_spec* merge, pagejit_error* error) {
  return pagejit::c_api::call(error, [&] {
    return with_spec<CascadeFamily>(spec, [&](const pagejit::CascadeSpec& known) -> Status {
      if (Status s = check_optional_output("pagejit_kernel_spec", prefix); !s) return s;
      if (Status s = check_optional_output("pagejit_kernel_spec", suffix); !s) return s;
      if (Status s = check_optional_output("pagejit_merge_states_spec", merge); !s) return s;
      const pagejit::CascadeParts parts = pagejit::cascade_parts(known);
      fill_optional(prefix, AttentionFamily::to_c(parts.prefix));
      fill_optional(suffix, AttentionFamily::to_c(parts.suffix));
      fill_optional(merge, MergeStatesFamily::to_c(parts.merge));
      return {};
    });
  });
}

pagejit_status pagejit_cascade_kernel_workspace_bytes(const pagejit_cascade_kernel* kernel,
                                                      const pagejit_cascade_args* args,
                                                      size_t* bytes, pagejit_error* error) {
  return number_of<CascadeFamily>(
      kernel, args, "bytes", bytes, error,
      [](const auto& handle, const auto& known) { return handle.workspace_bytes(known); });
}

pagejit_status pagejit_cascade_kernel_max_workspace_bytes(const pagejit_cascade_kernel* kernel,
                                                          int32_t num_levels,
                                                          int32_t num_query_tokens,
                                                          int32_t num_kv_heads, size_t* bytes,
                                                          pagejit_error* error) {
  return with_kernel<CascadeFamily>(kernel, error, [&](const auto& handle) -> Status {
    if (Status s = need(bytes, "bytes"); !s) return s;
    *bytes = handle.max_workspace_bytes(num_levels, num_query_tokens, num_kv_heads);
    return {};
  });
}

pagejit_status pagejit_cascade_kernel_choose_num_splits(const pagejit_cascade_kernel* kernel,
                                                        const pagejit_cascade_args* args,
                                                        int32_t level, int32_t* num_splits,
                                                        pagejit_error* error) {
  return number_of<CascadeFamily>(kernel, args, "num_splits", num_splits, error,
                                  [level](const auto& handle, const auto& known) {
                                    return handle.choose_num_splits(known, level);
                                  });
}

pagejit_status pagejit_cascade_level_init(pagejit_cascade_level* level, size_t struct_size) {
  const pagejit_cascade_level defaults = {};
  return pagejit::c_api::init_struct(level, struct_size, defaults);
}
