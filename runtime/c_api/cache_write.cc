#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

Status CacheWriteFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_cache_write_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_cache_write_spec");
  to->dtype = fields.enumerator("dtype", known->dtype, DataType::kInt4);
  to->kv_dtype = fields.enumerator("kv_dtype", known->kv_dtype, DataType::kInt4);
  to->scale = fields.enumerator("scale", known->scale, KvScale::kTokenHead);
  to->layout = fields.enumerator("layout", known->layout, KvLayout::kDsMla);
  to->head_size = known->head_size;
  to->head_size_v = known->head_size_v;
  to->block_size = known->block_size;
  to->rope = fields.enumerator("rope", known->rope, RopeStyle::kInterleaved);
  to->rotary_dim = known->rotary_dim;
  to->cos_sin_dtype = fields.enumerator("cos_sin_dtype", known->cos_sin_dtype, DataType::kInt4);
  to->row_alignment = known->row_alignment;
  to->debug = fields.flag("debug", known->debug);
  to->pdl = fields.flag("pdl", known->pdl);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_cache_write_spec CacheWriteFamily::to_c(const Spec& from) {
  pagejit_cache_write_spec to = {};
  to.struct_size = sizeof to;
  to.dtype = static_cast<int32_t>(from.dtype);
  to.kv_dtype = static_cast<int32_t>(from.kv_dtype);
  to.scale = static_cast<int32_t>(from.scale);
  to.layout = static_cast<int32_t>(from.layout);
  to.head_size = from.head_size;
  to.head_size_v = from.head_size_v;
  to.block_size = from.block_size;
  to.rope = static_cast<int32_t>(from.rope);
  to.rotary_dim = from.rotary_dim;
  to.cos_sin_dtype = static_cast<int32_t>(from.cos_sin_dtype);
  to.row_alignment = from.row_alignment;
  to.debug = from.debug ? 1 : 0;
  to.pdl = from.pdl ? 1 : 0;
  return to;
}

Status CacheWriteFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_cache_write_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_cache_write_args");
  to->key = known->key;
  to->value = known->value;
  to->key_stride_token = known->key_stride_token;
  to->key_stride_head = known->key_stride_head;
  to->value_stride_token = known->value_stride_token;
  to->value_stride_head = known->value_stride_head;
  to->k_cache = known->k_cache;
  to->v_cache = known->v_cache;
  to->k_strides = c_api::to_cpp(known->k_strides);
  to->v_strides = c_api::to_cpp(known->v_strides);
  to->slot_mapping = known->slot_mapping;
  to->num_tokens = known->num_tokens;
  to->num_kv_heads = known->num_kv_heads;
  to->k_scale = known->k_scale;
  to->v_scale = known->v_scale;
  to->q = known->q;
  to->q_stride_token = known->q_stride_token;
  to->q_stride_head = known->q_stride_head;
  to->num_q_heads = known->num_q_heads;
  to->positions = known->positions;
  to->cos_sin = known->cos_sin;
  to->num_blocks = known->num_blocks;
  to->max_position = known->max_position;
  to->debug_report = known->debug_report;
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_cache_write_args CacheWriteFamily::default_args() {
  pagejit_cache_write_args args = {};
  args.struct_size = sizeof args;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(CacheWriteFamily, pagejit_cache_write_spec, pagejit_cache_write_args)
PAGEJIT_C_KERNEL_FUNCTIONS(CacheWriteFamily, pagejit_cache_write_spec, pagejit_cache_write_kernel,
                           pagejit_cache_write_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(CacheWriteFamily, pagejit_cache_write_spec,
                                  pagejit_cache_write_kernel)
PAGEJIT_C_GET_SPEC_FUNCTION(CacheWriteFamily, pagejit_cache_write_spec, pagejit_cache_write_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(CacheWriteFamily, pagejit_cache_write_kernel)

pagejit_status pagejit_cache_write_spec_value_head_size(const pagejit_cache_write_spec* spec,
                                                        int32_t* head_size_v,
                                                        pagejit_error* error) {
  return pagejit::c_api::spec_number<pagejit::c_api::CacheWriteFamily>(
      spec, "head_size_v", head_size_v, error,
      [](const pagejit::CacheWriteSpec& known) { return pagejit::value_head_size(known); });
}
