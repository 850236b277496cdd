#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

Status CopyBlocksFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_copy_blocks_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_copy_blocks_spec");
  to->alignment = known->alignment;
  to->debug = fields.flag("debug", known->debug);
  return fields.status();
}

pagejit_copy_blocks_spec CopyBlocksFamily::to_c(const Spec& from) {
  pagejit_copy_blocks_spec to = {};
  to.struct_size = sizeof to;
  to.alignment = from.alignment;
  to.debug = from.debug ? 1 : 0;
  return to;
}

Status CopyBlocksFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_copy_blocks_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_copy_blocks_args");
  to->caches = known->caches;
  to->num_caches = known->num_caches;
  to->block_bytes = known->block_bytes;
  to->block_stride_bytes = known->block_stride_bytes;
  to->pairs = known->pairs;
  to->num_pairs = known->num_pairs;
  to->num_blocks = known->num_blocks;
  to->debug_report = known->debug_report;
  fields.reserved(known->reserved | known->reserved1);
  return fields.status();
}

pagejit_copy_blocks_args CopyBlocksFamily::default_args() {
  pagejit_copy_blocks_args args = {};
  args.struct_size = sizeof args;
  return args;
}

Status GatherCacheFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_gather_cache_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_gather_cache_spec");
  to->kv_dtype = fields.enumerator("kv_dtype", known->kv_dtype, DataType::kInt4);
  to->out_dtype = fields.enumerator("out_dtype", known->out_dtype, DataType::kInt4);
  to->scale = fields.enumerator("scale", known->scale, KvScale::kTokenHead);
  to->layout = fields.enumerator("layout", known->layout, KvLayout::kDsMla);
  to->head_size = known->head_size;
  to->head_size_v = known->head_size_v;
  to->block_size = known->block_size;
  to->row_alignment = known->row_alignment;
  to->debug = fields.flag("debug", known->debug);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_gather_cache_spec GatherCacheFamily::to_c(const Spec& from) {
  pagejit_gather_cache_spec to = {};
  to.struct_size = sizeof to;
  to.kv_dtype = static_cast<int32_t>(from.kv_dtype);
  to.out_dtype = static_cast<int32_t>(from.out_dtype);
  to.scale = static_cast<int32_t>(from.scale);
  to.layout = static_cast<int32_t>(from.layout);
  to.head_size = from.head_size;
  to.head_size_v = from.head_size_v;
  to.block_size = from.block_size;
  to.row_alignment = from.row_alignment;
  to.debug = from.debug ? 1 : 0;
  return to;
}

Status GatherCacheFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_gather_cache_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_gather_cache_args");
  to->k_cache = known->k_cache;
  to->v_cache = known->v_cache;
  to->k_strides = c_api::to_cpp(known->k_strides);
  to->v_strides = c_api::to_cpp(known->v_strides);
  to->block_table = known->block_table;
  to->block_table_stride = known->block_table_stride;
  to->cu_seq_lens = known->cu_seq_lens;
  to->seq_starts = known->seq_starts;
  to->num_seqs = known->num_seqs;
  to->num_tokens = known->num_tokens;
  to->num_kv_heads = known->num_kv_heads;
  to->k_scale = known->k_scale;
  to->v_scale = known->v_scale;
  to->k_out = known->k_out;
  to->v_out = known->v_out;
  to->out_stride_token = known->out_stride_token;
  to->out_stride_head = known->out_stride_head;
  to->v_out_stride_token = known->v_out_stride_token;
  to->v_out_stride_head = known->v_out_stride_head;
  to->num_blocks = known->num_blocks;
  to->debug_report = known->debug_report;
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_gather_cache_args GatherCacheFamily::default_args() {
  pagejit_gather_cache_args args = {};
  args.struct_size = sizeof args;
  return args;
}

Status ConvertFloat8Family::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_convert_float8_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_convert_float8_spec");
  to->from_dtype = fields.enumerator("from_dtype", known->from_dtype, DataType::kInt4);
  to->to_dtype = fields.enumerator("to_dtype", known->to_dtype, DataType::kInt4);
  return fields.status();
}

pagejit_convert_float8_spec ConvertFloat8Family::to_c(const Spec& from) {
  pagejit_convert_float8_spec to = {};
  to.struct_size = sizeof to;
  to.from_dtype = static_cast<int32_t>(from.from_dtype);
  to.to_dtype = static_cast<int32_t>(from.to_dtype);
  return to;
}

Status ConvertFloat8Family::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_convert_float8_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_convert_float8_args");
  to->from = known->from;
  to->to = known->to;
  to->count = known->count;
  to->scale = known->scale;
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_convert_float8_args ConvertFloat8Family::default_args() {
  const ConvertFloat8Args defaults;
  pagejit_convert_float8_args args = {};
  args.struct_size = sizeof args;
  args.scale = defaults.scale;
  return args;
}

Status to_cpp(const pagejit_swap_blocks_args* from, SwapBlocksArgs* to) {
  pagejit_swap_blocks_args copy;
  Status refusal;
  const pagejit_swap_blocks_args* known =
      open_struct("pagejit_swap_blocks_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_swap_blocks_args");
  to->direction = fields.enumerator("direction", known->direction, SwapDirection::kDeviceToDevice);
  to->from = known->from;
  to->to = known->to;
  to->block_bytes = known->block_bytes;
  to->from_stride_bytes = known->from_stride_bytes;
  to->to_stride_bytes = known->to_stride_bytes;
  to->pairs = known->pairs;
  to->num_pairs = known->num_pairs;
  fields.reserved(known->reserved | known->reserved1);
  return fields.status();
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(CopyBlocksFamily, pagejit_copy_blocks_spec, pagejit_copy_blocks_args)
PAGEJIT_C_KERNEL_FUNCTIONS(CopyBlocksFamily, pagejit_copy_blocks_spec, pagejit_copy_blocks_kernel,
                           pagejit_copy_blocks_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(CopyBlocksFamily, pagejit_copy_blocks_spec,
                                  pagejit_copy_blocks_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(CopyBlocksFamily, pagejit_copy_blocks_kernel)
PAGEJIT_C_SPEC_FUNCTIONS(GatherCacheFamily, pagejit_gather_cache_spec, pagejit_gather_cache_args)
PAGEJIT_C_KERNEL_FUNCTIONS(GatherCacheFamily, pagejit_gather_cache_spec,
                           pagejit_gather_cache_kernel, pagejit_gather_cache_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(GatherCacheFamily, pagejit_gather_cache_spec,
                                  pagejit_gather_cache_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(GatherCacheFamily, pagejit_gather_cache_kernel)
PAGEJIT_C_SPEC_FUNCTIONS(ConvertFloat8Family, pagejit_convert_float8_spec,
                         pagejit_convert_float8_args)
PAGEJIT_C_KERNEL_FUNCTIONS(ConvertFloat8Family, pagejit_convert_float8_spec,
                           pagejit_convert_float8_kernel, pagejit_convert_float8_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(ConvertFloat8Family, pagejit_convert_float8_spec,
                                  pagejit_convert_float8_kernel)

pagejit_status pagejit_gather_cache_spec_value_head_size(const pagejit_gather_cache_spec* spec,
                                                         int32_t* head_size_v,
                                                         pagejit_error* error) {
  return pagejit::c_api::spec_number<pagejit::c_api::GatherCacheFamily>(
      spec, "head_size_v", head_size_v, error,
      [](const pagejit::GatherCacheSpec& known) { return pagejit::value_head_size(known); });
}

pagejit_status pagejit_swap_blocks_args_init(pagejit_swap_blocks_args* args, size_t struct_size) {
  pagejit_swap_blocks_args defaults = {};
  return pagejit::c_api::init_struct(args, struct_size, defaults);
}

pagejit_status pagejit_engine_swap_blocks(pagejit_engine* engine,
                                          const pagejit_swap_blocks_args* args,
                                          pagejit_stream stream, pagejit_error* error) {
  using pagejit::Status;
  return pagejit::c_api::call(error, [&] {
    return pagejit::c_api::with_engine(engine, [&](pagejit::Engine& cpp_engine) -> Status {
      pagejit::SwapBlocksArgs known;
      if (Status s = pagejit::c_api::to_cpp(args, &known); !s) return s;
      return cpp_engine.swap_blocks(known, stream);
    });
  });
}
