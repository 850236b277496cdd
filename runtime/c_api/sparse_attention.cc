#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

Status SparseAttentionFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_sparse_attention_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_sparse_attention_spec");
  to->index_num_heads = known->index_num_heads;
  to->index_head_size = known->index_head_size;
  to->contiguous_index_keys = fields.flag("contiguous_index_keys", known->contiguous_index_keys);
  fields.reserved(known->reserved);
  if (!fields.status()) return fields.status();
  return AttentionFamily::to_cpp(known->attention, &to->attention);
}

pagejit_sparse_attention_spec SparseAttentionFamily::to_c(const Spec& from) {
  pagejit_sparse_attention_spec to = {};
  to.struct_size = sizeof to;
  to.index_num_heads = from.index_num_heads;
  to.index_head_size = from.index_head_size;
  to.contiguous_index_keys = from.contiguous_index_keys ? 1 : 0;
  return to;
}

Status SparseAttentionFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_sparse_attention_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_sparse_attention_args");
  to->num_rows = known->num_rows;
  to->top_k = known->top_k;
  to->index_q = known->index_q;
  to->index_q_stride_row = known->index_q_stride_row;
  to->index_q_stride_head = known->index_q_stride_head;
  to->index_weights = known->index_weights;
  to->index_weights_stride = known->index_weights_stride;
  to->index_k = known->index_k;
  to->index_k_stride = known->index_k_stride;
  to->index_k_scale = known->index_k_scale;
  to->num_index_keys = known->num_index_keys;
  to->ranges = c_api::to_cpp(known->ranges);
  to->max_seq_len = known->max_seq_len;
  to->logits_bytes = known->logits_bytes;
  to->indices = known->indices;
  to->indices_stride = known->indices_stride;
  to->q = known->q;
  to->q_stride_token = known->q_stride_token;
  to->q_stride_head = known->q_stride_head;
  to->q_scale = known->q_scale;
  to->k_cache = known->k_cache;
  to->k_strides = c_api::to_cpp(known->k_strides);
  to->k_scale = known->k_scale;
  to->kv_scale_stride = known->kv_scale_stride;
  to->num_blocks = known->num_blocks;
  to->block_table = known->block_table;
  to->block_table_stride = known->block_table_stride;
  to->max_blocks_per_seq = known->max_blocks_per_seq;
  to->query_seqs = known->query_seqs;
  to->out = known->out;
  to->out_stride_token = known->out_stride_token;
  to->out_stride_head = known->out_stride_head;
  to->out_scale = known->out_scale;
  to->lse = known->lse;
  to->soft_cap = known->soft_cap;
  to->sinks = known->sinks;
  to->num_kv_heads = known->num_kv_heads;
  to->scale = known->scale;
  to->num_splits = known->num_splits;
  to->workspace = known->workspace;
  to->workspace_bytes = known->workspace_bytes;
  fields.reserved(known->reserved | known->ranges.reserved | known->reserved1 | known->reserved2 |
                  known->reserved3 | known->reserved4);
  return fields.status();
}

pagejit_sparse_attention_args SparseAttentionFamily::default_args() {
  const SparseAttentionArgs defaults;
  pagejit_sparse_attention_args args = {};
  args.struct_size = sizeof args;
  args.ranges.next_n = defaults.ranges.next_n;
  args.logits_bytes = defaults.logits_bytes;
  args.num_kv_heads = defaults.num_kv_heads;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(SparseAttentionFamily, pagejit_sparse_attention_spec,
                         pagejit_sparse_attention_args)
PAGEJIT_C_KERNEL_FUNCTIONS(SparseAttentionFamily, pagejit_sparse_attention_spec,
                           pagejit_sparse_attention_kernel, pagejit_sparse_attention_args)
PAGEJIT_C_WORKSPACE_FUNCTIONS(SparseAttentionFamily, pagejit_sparse_attention_kernel)

using pagejit::Status;
using pagejit::c_api::AttentionFamily;
using pagejit::c_api::check_optional_output;
using pagejit::c_api::check_output;
using pagejit::c_api::fill;
using pagejit::c_api::fill_optional;
using pagejit::c_api::IndexLogitsFamily;
using pagejit::c_api::need;
using pagejit::c_api::number_of;
using pagejit::c_api::SparseAttentionFamily;
using pagejit::c_api::TopKFamily;
using pagejit::c_api::with_kernel;
using pagejit::c_api::with_spec;

pagejit_status pagejit_sparse_attention_kernel_precompile(
    pagejit_engine* engine, const pagejit_sparse_attention_spec* spec, const pagejit_target* target,
    pagejit_kernel_info* logits, pagejit_kernel_info* top_k, pagejit_kernel_info* attention,
    pagejit_error* error) {
  return pagejit::c_api::precompile<SparseAttentionFamily>(engine, spec, target, error, logits,
                                                           top_k, attention);
}

pagejit_status pagejit_sparse_attention_kernel_get_info(
    const pagejit_sparse_attention_kernel* kernel, pagejit_kernel_info* logits,
    pagejit_kernel_info* top_k, pagejit_kernel_info* attention, pagejit_error* error) {
  return pagejit::c_api::get_info<SparseAttentionFamily>(kernel, error, logits, top_k, attention);
}

pagejit_status pagejit_sparse_attention_kernel_get_spec(
    const pagejit_sparse_attention_kernel* kernel, pagejit_sparse_attention_spec* spec,
    pagejit_kernel_spec* attention, pagejit_error* error) {
  return with_kernel<SparseAttentionFamily>(kernel, error, [&](const auto& handle) -> Status {
    if (Status s = check_output("pagejit_sparse_attention_spec", spec); !s) return s;
    if (Status s = check_output("pagejit_kernel_spec", attention); !s) return s;
    fill(attention, AttentionFamily::to_c(handle.spec().attention));
    pagejit_sparse_attention_spec filled = SparseAttentionFamily::to_c(handle.spec());
    filled.attention = attention;
    fill(spec, filled);
    return {};
  });
}

pagejit_status pagejit_sparse_attention_spec_parts(const pagejit_sparse_attention_spec* spec,
                                                   pagejit_index_logits_spec* logits,
                                                   pagejit_top_k_spec* top_k,
                                                   pagejit_kernel_spec* attention,
                                                   pagejit_error* error) {
  return pagejit::c_api::call(error, [&] {
    return with_spec<SparseAttentionFamily>(
        spec, [&](const pagejit::SparseAttentionSpec& known) -> Status {
          if (Status s = check_optional_output("pagejit_index_logits_spec", logits); !s) return s;
          if (Status s = check_optional_output("pagejit_top_k_spec", top_k); !s) return s;
          if (Status s = check_optional_output("pagejit_kernel_spec", attention); !s) return s;
          const pagejit::SparseAttentionParts parts = pagejit::sparse_attention_parts(known);
          fill_optional(logits, IndexLogitsFamily::to_c(parts.logits));
          fill_optional(top_k, TopKFamily::to_c(parts.top_k));
          fill_optional(attention, AttentionFamily::to_c(parts.attention));
          return {};
        });
  });
}

pagejit_status pagejit_sparse_attention_kernel_workspace_bytes(
    const pagejit_sparse_attention_kernel* kernel, const pagejit_sparse_attention_args* args,
    size_t* bytes, pagejit_error* error) {
  return number_of<SparseAttentionFamily>(
      kernel, args, "bytes", bytes, error,
      [](const auto& handle, const auto& known) { return handle.workspace_bytes(known); });
}

pagejit_status pagejit_sparse_attention_kernel_num_chunks(
    const pagejit_sparse_attention_kernel* kernel, const pagejit_sparse_attention_args* args,
    int32_t* num_chunks, pagejit_error* error) {
  return number_of<SparseAttentionFamily>(
      kernel, args, "num_chunks", num_chunks, error,
      [](const auto& handle, const auto& known) { return handle.num_chunks(known); });
}

pagejit_status pagejit_sparse_attention_kernel_max_workspace_bytes(
    const pagejit_sparse_attention_kernel* kernel, int32_t num_rows, int32_t top_k,
    int64_t logits_bytes, size_t* bytes, pagejit_error* error) {
  return with_kernel<SparseAttentionFamily>(kernel, error, [&](const auto& handle) -> Status {
    if (Status s = need(bytes, "bytes"); !s) return s;
    *bytes = handle.max_workspace_bytes(num_rows, top_k, logits_bytes);
    return {};
  });
}
