#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

Status IndexKeyWriteFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_index_key_write_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_index_key_write_spec");
  to->dtype = fields.enumerator("dtype", known->dtype, DataType::kInt4);
  to->head_size = known->head_size;
  to->quant_block_size = known->quant_block_size;
  to->block_size = known->block_size;
  to->power_of_two_scale = fields.flag("power_of_two_scale", known->power_of_two_scale);
  to->row_alignment = known->row_alignment;
  to->debug = fields.flag("debug", known->debug);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_index_key_write_spec IndexKeyWriteFamily::to_c(const Spec& from) {
  pagejit_index_key_write_spec to = {};
  to.struct_size = sizeof to;
  to.dtype = static_cast<int32_t>(from.dtype);
  to.head_size = from.head_size;
  to.quant_block_size = from.quant_block_size;
  to.block_size = from.block_size;
  to.power_of_two_scale = from.power_of_two_scale ? 1 : 0;
  to.row_alignment = from.row_alignment;
  to.debug = from.debug ? 1 : 0;
  return to;
}

Status IndexKeyWriteFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_index_key_write_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_index_key_write_args");
  to->k = known->k;
  to->k_stride_token = known->k_stride_token;
  to->cache = known->cache;
  to->block_stride_bytes = known->block_stride_bytes;
  to->slot_mapping = known->slot_mapping;
  to->num_tokens = known->num_tokens;
  to->num_blocks = known->num_blocks;
  to->debug_report = known->debug_report;
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_index_key_write_args IndexKeyWriteFamily::default_args() {
  pagejit_index_key_write_args args = {};
  args.struct_size = sizeof args;
  return args;
}

Status IndexKeyGatherFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_index_key_gather_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_index_key_gather_spec");
  to->head_size = known->head_size;
  to->quant_block_size = known->quant_block_size;
  to->block_size = known->block_size;
  to->row_alignment = known->row_alignment;
  to->debug = fields.flag("debug", known->debug);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_index_key_gather_spec IndexKeyGatherFamily::to_c(const Spec& from) {
  pagejit_index_key_gather_spec to = {};
  to.struct_size = sizeof to;
  to.head_size = from.head_size;
  to.quant_block_size = from.quant_block_size;
  to.block_size = from.block_size;
  to.row_alignment = from.row_alignment;
  to.debug = from.debug ? 1 : 0;
  return to;
}

Status IndexKeyGatherFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_index_key_gather_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  to->cache = known->cache;
  to->block_stride_bytes = known->block_stride_bytes;
  to->block_table = known->block_table;
  to->block_table_stride = known->block_table_stride;
  to->cu_seq_lens = known->cu_seq_lens;
  to->seq_starts = known->seq_starts;
  to->num_seqs = known->num_seqs;
  to->num_tokens = known->num_tokens;
  to->k_out = known->k_out;
  to->k_out_stride_token = known->k_out_stride_token;
  to->scale_out = known->scale_out;
  to->scale_out_stride_token = known->scale_out_stride_token;
  to->num_blocks = known->num_blocks;
  to->debug_report = known->debug_report;
  return {};
}

pagejit_index_key_gather_args IndexKeyGatherFamily::default_args() {
  pagejit_index_key_gather_args args = {};
  args.struct_size = sizeof args;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(IndexKeyWriteFamily, pagejit_index_key_write_spec,
                         pagejit_index_key_write_args)
PAGEJIT_C_KERNEL_FUNCTIONS(IndexKeyWriteFamily, pagejit_index_key_write_spec,
                           pagejit_index_key_write_kernel, pagejit_index_key_write_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(IndexKeyWriteFamily, pagejit_index_key_write_spec,
                                  pagejit_index_key_write_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(IndexKeyWriteFamily, pagejit_index_key_write_kernel)
PAGEJIT_C_SPEC_FUNCTIONS(IndexKeyGatherFamily, pagejit_index_key_gather_spec,
                         pagejit_index_key_gather_args)
PAGEJIT_C_KERNEL_FUNCTIONS(IndexKeyGatherFamily, pagejit_index_key_gather_spec,
                           pagejit_index_key_gather_kernel, pagejit_index_key_gather_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(IndexKeyGatherFamily, pagejit_index_key_gather_spec,
                                  pagejit_index_key_gather_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(IndexKeyGatherFamily, pagejit_index_key_gather_kernel)

int64_t pagejit_index_page_bytes(int32_t block_size, int32_t head_size, int32_t quant_block_size) {
  if (block_size < 1 || head_size < 1 || quant_block_size < 1) return 0;
  if (block_size > INT64_MAX / pagejit::index_page_bytes(1, head_size, quant_block_size)) return 0;
  return pagejit::index_page_bytes(block_size, head_size, quant_block_size);
}
