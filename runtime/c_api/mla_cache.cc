#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

Status MlaCacheWriteFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_mla_cache_write_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_mla_cache_write_spec");
  to->dtype = fields.enumerator("dtype", known->dtype, DataType::kInt4);
  to->format = fields.enumerator("format", known->format, MlaFormat::kDsMla);
  to->kv_lora_rank = known->kv_lora_rank;
  to->qk_rope_head_dim = known->qk_rope_head_dim;
  to->block_size = known->block_size;
  to->rope = fields.enumerator("rope", known->rope, RopeStyle::kInterleaved);
  to->cos_sin_dtype = fields.enumerator("cos_sin_dtype", known->cos_sin_dtype, DataType::kInt4);
  to->grouped = fields.flag("grouped", known->grouped);
  to->row_alignment = known->row_alignment;
  to->debug = fields.flag("debug", known->debug);
  to->pdl = fields.flag("pdl", known->pdl);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_mla_cache_write_spec MlaCacheWriteFamily::to_c(const Spec& from) {
  pagejit_mla_cache_write_spec to = {};
  to.struct_size = sizeof to;
  to.dtype = static_cast<int32_t>(from.dtype);
  to.format = static_cast<int32_t>(from.format);
  to.kv_lora_rank = from.kv_lora_rank;
  to.qk_rope_head_dim = from.qk_rope_head_dim;
  to.block_size = from.block_size;
  to.rope = static_cast<int32_t>(from.rope);
  to.cos_sin_dtype = static_cast<int32_t>(from.cos_sin_dtype);
  to.grouped = from.grouped ? 1 : 0;
  to.row_alignment = from.row_alignment;
  to.debug = from.debug ? 1 : 0;
  to.pdl = from.pdl ? 1 : 0;
  return to;
}

Status MlaCacheWriteFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_mla_cache_write_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_mla_cache_write_args");
  to->kv_c = known->kv_c;
  to->k_pe = known->k_pe;
  to->kv_c_stride_token = known->kv_c_stride_token;
  to->k_pe_stride_token = known->k_pe_stride_token;
  to->cache = known->cache;
  to->cache_stride_block = known->cache_stride_block;
  to->cache_stride_token = known->cache_stride_token;
  to->slot_mapping = known->slot_mapping;
  to->num_tokens = known->num_tokens;
  to->caches = known->caches;
  to->num_layers = known->num_layers;
  to->kv_c_stride_layer = known->kv_c_stride_layer;
  to->k_pe_stride_layer = known->k_pe_stride_layer;
  to->slot_mapping_stride_layer = known->slot_mapping_stride_layer;
  to->scale = known->scale;
  to->q_pe = known->q_pe;
  to->q_pe_stride_token = known->q_pe_stride_token;
  to->q_pe_stride_head = known->q_pe_stride_head;
  to->num_q_heads = known->num_q_heads;
  to->positions = known->positions;
  to->cos_sin = known->cos_sin;
  to->num_blocks = known->num_blocks;
  to->max_position = known->max_position;
  to->debug_report = known->debug_report;
  fields.reserved(known->reserved | known->reserved1 | known->reserved2);
  return fields.status();
}

pagejit_mla_cache_write_args MlaCacheWriteFamily::default_args() {
  pagejit_mla_cache_write_args args = {};
  args.struct_size = sizeof args;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(MlaCacheWriteFamily, pagejit_mla_cache_write_spec,
                         pagejit_mla_cache_write_args)
PAGEJIT_C_KERNEL_FUNCTIONS(MlaCacheWriteFamily, pagejit_mla_cache_write_spec,
                           pagejit_mla_cache_write_kernel, pagejit_mla_cache_write_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(MlaCacheWriteFamily, pagejit_mla_cache_write_spec,
                                  pagejit_mla_cache_write_kernel)
PAGEJIT_C_GET_SPEC_FUNCTION(MlaCacheWriteFamily, pagejit_mla_cache_write_spec,
                            pagejit_mla_cache_write_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(MlaCacheWriteFamily, pagejit_mla_cache_write_kernel)
