#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

BlockSparseArgs to_cpp(const pagejit_block_sparse_args& from) {
  return {.local_blocks = from.local_blocks,
          .vert_stride = from.vert_stride,
          .block_size = from.block_size,
          .head_sliding_step = from.head_sliding_step,
          .tp_rank = from.tp_rank};
}

Status AttentionFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_kernel_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_kernel_spec");
  to->queries = fields.enumerator("queries", known->queries, QueryLengths::kShared);
  to->q_dtype = fields.enumerator("q_dtype", known->q_dtype, DataType::kInt4);
  to->kv_dtype = fields.enumerator("kv_dtype", known->kv_dtype, DataType::kInt4);
  to->out_dtype = fields.enumerator("out_dtype", known->out_dtype, DataType::kInt4);
  to->head_size = known->head_size;
  to->head_size_v = known->head_size_v;
  to->block_size = known->block_size;
  to->group_size = known->group_size;
  to->causality = fields.enumerator("causality", known->causality, Causality::kPerSequence);
  to->kv_table = fields.enumerator("kv_table", known->kv_table, KvTable::kPositions);
  to->kv_layout = fields.enumerator("kv_layout", known->kv_layout, KvLayout::kDsMla);
  to->latent = fields.flag("latent", known->latent);
  to->token_scales = fields.flag("token_scales", known->token_scales);
  to->kv_alignment = known->kv_alignment;
  to->window = fields.flag("window", known->window);
  to->chunked = fields.flag("chunked", known->chunked);
  to->custom_mask = fields.flag("custom_mask", known->custom_mask);
  to->bidirectional_ranges = fields.flag("bidirectional_ranges", known->bidirectional_ranges);
  to->block_sparse = fields.flag("block_sparse", known->block_sparse);
  to->soft_cap = fields.flag("soft_cap", known->soft_cap);
  to->alibi = fields.flag("alibi", known->alibi);
  to->qq_bias = fields.flag("qq_bias", known->qq_bias);
  to->sinks = fields.flag("sinks", known->sinks);
  to->batch_invariant = fields.flag("batch_invariant", known->batch_invariant);
  to->debug = fields.flag("debug", known->debug);
  to->pdl = fields.flag("pdl", known->pdl);
  return fields.status();
}

pagejit_kernel_spec AttentionFamily::to_c(const Spec& from) {
  pagejit_kernel_spec to = {};
  to.struct_size = sizeof to;
  to.queries = static_cast<int32_t>(from.queries);
  to.q_dtype = static_cast<int32_t>(from.q_dtype);
  to.kv_dtype = static_cast<int32_t>(from.kv_dtype);
  to.out_dtype = static_cast<int32_t>(from.out_dtype);
  to.head_size = from.head_size;
  to.head_size_v = from.head_size_v;
  to.block_size = from.block_size;
  to.group_size = from.group_size;
  to.causality = static_cast<int32_t>(from.causality);
  to.kv_table = static_cast<int32_t>(from.kv_table);
  to.kv_layout = static_cast<int32_t>(from.kv_layout);
  to.latent = from.latent ? 1 : 0;
  to.token_scales = from.token_scales ? 1 : 0;
  to.kv_alignment = from.kv_alignment;
  to.window = from.window ? 1 : 0;
  to.chunked = from.chunked ? 1 : 0;
  to.custom_mask = from.custom_mask ? 1 : 0;
  to.bidirectional_ranges = from.bidirectional_ranges ? 1 : 0;
  to.block_sparse = from.block_sparse ? 1 : 0;
  to.soft_cap = from.soft_cap ? 1 : 0;
  to.alibi = from.alibi ? 1 : 0;
  to.qq_bias = from.qq_bias ? 1 : 0;
  to.sinks = from.sinks ? 1 : 0;
  to.batch_invariant = from.batch_invariant ? 1 : 0;
  to.debug = from.debug ? 1 : 0;
  to.pdl = from.pdl ? 1 : 0;
  return to;
}

Status AttentionFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_attention_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_attention_args");
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
  to->block_table = known->block_table;
  to->block_table_stride = known->block_table_stride;
  to->max_blocks_per_seq = known->max_blocks_per_seq;
  to->seq_lens = known->seq_lens;
  to->kv_indptr = known->kv_indptr;
  to->kv_indices = known->kv_indices;
  to->kv_last_block_len = known->kv_last_block_len;
  to->kv_start_loc = known->kv_start_loc;
  to->token_lists = known->token_lists;
  to->token_list_stride = known->token_list_stride;
  to->max_list_len = known->max_list_len;
  to->query_seqs = known->query_seqs;
  to->query_start_loc = known->query_start_loc;
  to->num_query_tokens = known->num_query_tokens;
  to->causal_flags = known->causal_flags;
  to->out = known->out;
  to->out_stride_token = known->out_stride_token;
  to->out_stride_head = known->out_stride_head;
  to->out_scale = known->out_scale;
  to->lse = known->lse;
  to->window_left = known->window_left;
  to->window_right = known->window_right;
  to->chunk_size = known->chunk_size;
  to->custom_mask = known->custom_mask;
  to->custom_mask_indptr = known->custom_mask_indptr;
  to->bidirectional_ranges = known->bidirectional_ranges;
  to->bidirectional_ranges_stride = known->bidirectional_ranges_stride;
  to->max_bidirectional_ranges = known->max_bidirectional_ranges;
  to->ranges_within_window = fields.flag("ranges_within_window", known->ranges_within_window);
  to->block_sparse = c_api::to_cpp(known->block_sparse);
  to->soft_cap = known->soft_cap;
  to->alibi_slopes = known->alibi_slopes;
  to->qq_bias = known->qq_bias;
  to->qq_bias_stride_seq = known->qq_bias_stride_seq;
  to->qq_bias_stride_row = known->qq_bias_stride_row;
  to->sinks = known->sinks;
  to->num_seqs = known->num_seqs;
  to->num_kv_heads = known->num_kv_heads;
  to->scale = known->scale;
  to->max_seq_len = known->max_seq_len;
  to->num_splits = known->num_splits;
  to->workspace = known->workspace;
  to->workspace_bytes = known->workspace_bytes;
  fields.reserved(known->reserved | known->reserved1 | known->reserved2 | known->reserved3 |
                  known->reserved4);
  return fields.status();
}

pagejit_attention_args AttentionFamily::default_args() {
  const AttentionArgs defaults;
  pagejit_attention_args args = {};
  args.struct_size = sizeof args;
  args.window_left = defaults.window_left;
  args.window_right = defaults.window_right;
  args.block_sparse.vert_stride = defaults.block_sparse.vert_stride;
  args.block_sparse.block_size = defaults.block_sparse.block_size;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(AttentionFamily, pagejit_kernel_spec, pagejit_attention_args)
PAGEJIT_C_KERNEL_FUNCTIONS(AttentionFamily, pagejit_kernel_spec, pagejit_kernel,
                           pagejit_attention_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(AttentionFamily, pagejit_kernel_spec, pagejit_kernel)
PAGEJIT_C_GET_SPEC_FUNCTION(AttentionFamily, pagejit_kernel_spec, pagejit_kernel)
PAGEJIT_C_WORKSPACE_FUNCTIONS(AttentionFamily, pagejit_kernel)

using pagejit::AttentionArgs;
using pagejit::Kernel;
using pagejit::KernelSpec;
using pagejit::Result;
using pagejit::Status;
using pagejit::c_api::AttentionFamily;
using pagejit::c_api::call;
using pagejit::c_api::need;
using pagejit::c_api::number_of;
using pagejit::c_api::with_kernel;

pagejit_status pagejit_kernel_spec_parse(const char* text, pagejit_kernel_spec* spec,
                                         pagejit_error* error) {
  return call(error, [&]() -> Status {
    if (Status s = need(text, "text"); !s) return s;
    if (Status s = pagejit::c_api::check_output("pagejit_kernel_spec", spec); !s) return s;
    const Result<KernelSpec> parsed = pagejit::parse_spec(text);
    if (!parsed) return parsed.status();
    pagejit::c_api::fill(spec, AttentionFamily::to_c(*parsed));
    return {};
  });
}

pagejit_status pagejit_kernel_spec_value_head_size(const pagejit_kernel_spec* spec,
                                                   int32_t* head_size_v, pagejit_error* error) {
  return pagejit::c_api::spec_number<AttentionFamily>(
      spec, "head_size_v", head_size_v, error,
      [](const KernelSpec& known) { return pagejit::value_head_size(known); });
}

pagejit_status pagejit_kernel_spec_kv_token_bytes(const pagejit_kernel_spec* spec, int32_t* bytes,
                                                  pagejit_error* error) {
  return pagejit::c_api::spec_number<AttentionFamily>(
      spec, "bytes", bytes, error,
      [](const KernelSpec& known) { return pagejit::kv_token_bytes(known); });
}

pagejit_status pagejit_kernel_choose_num_splits(const pagejit_kernel* kernel,
                                                const pagejit_attention_args* args,
                                                int32_t* num_splits, pagejit_error* error) {
  return number_of<AttentionFamily>(kernel, args, "num_splits", num_splits, error,
                                    [](const Kernel& handle, const AttentionArgs& known) {
                                      return handle.choose_num_splits(known);
                                    });
}

pagejit_status pagejit_kernel_workspace_bytes(const pagejit_kernel* kernel,
                                              const pagejit_attention_args* args, size_t* bytes,
                                              pagejit_error* error) {
  return number_of<AttentionFamily>(kernel, args, "bytes", bytes, error,
                                    [](const Kernel& handle, const AttentionArgs& known) {
                                      return handle.workspace_bytes(known);
                                    });
}

pagejit_status pagejit_kernel_choose_num_splits_for(const pagejit_kernel* kernel, int32_t num_seqs,
                                                    int32_t num_kv_heads, int64_t max_seq_len,
                                                    int32_t* num_splits, pagejit_error* error) {
  return with_kernel<AttentionFamily>(kernel, error, [&](const Kernel& handle) -> Status {
    if (Status s = need(num_splits, "num_splits"); !s) return s;
    *num_splits = handle.choose_num_splits(num_seqs, num_kv_heads, max_seq_len);
    return {};
  });
}

pagejit_status pagejit_kernel_workspace_bytes_for(const pagejit_kernel* kernel, int32_t num_seqs,
                                                  int32_t num_kv_heads, int64_t max_seq_len,
                                                  int32_t num_splits, size_t* bytes,
                                                  pagejit_error* error) {
  return with_kernel<AttentionFamily>(kernel, error, [&](const Kernel& handle) -> Status {
    if (Status s = need(bytes, "bytes"); !s) return s;
    *bytes = handle.workspace_bytes(num_seqs, num_kv_heads, max_seq_len, num_splits);
    return {};
  });
}

pagejit_status pagejit_kernel_max_workspace_bytes(const pagejit_kernel* kernel, size_t* bytes,
                                                  pagejit_error* error) {
  return with_kernel<AttentionFamily>(kernel, error, [&](const Kernel& handle) -> Status {
    if (Status s = need(bytes, "bytes"); !s) return s;
    *bytes = handle.max_workspace_bytes();
    return {};
  });
}
