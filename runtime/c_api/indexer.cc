#include "runtime/c_api/family_functions.h"

namespace pagejit::c_api {

IndexRowRanges to_cpp(const pagejit_index_row_ranges& from) {
  return {.row_begins = from.row_begins,
          .row_ends = from.row_ends,
          .seq_lens = from.seq_lens,
          .next_n = from.next_n};
}

Status IndexLogitsFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_index_logits_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_index_logits_spec");
  to->num_heads = known->num_heads;
  to->head_size = known->head_size;
  to->block_size = known->block_size;
  to->clean = fields.flag("clean", known->clean);
  to->debug = fields.flag("debug", known->debug);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_index_logits_spec IndexLogitsFamily::to_c(const Spec& from) {
  pagejit_index_logits_spec to = {};
  to.struct_size = sizeof to;
  to.num_heads = from.num_heads;
  to.head_size = from.head_size;
  to.block_size = from.block_size;
  to.clean = from.clean ? 1 : 0;
  to.debug = from.debug ? 1 : 0;
  return to;
}

Status IndexLogitsFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_index_logits_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_index_logits_args");
  to->q = known->q;
  to->q_stride_row = known->q_stride_row;
  to->q_stride_head = known->q_stride_head;
  to->weights = known->weights;
  to->weights_stride = known->weights_stride;
  to->k = known->k;
  to->k_stride = known->k_stride;
  to->k_scale = known->k_scale;
  to->num_keys = known->num_keys;
  to->block_table = known->block_table;
  to->block_table_stride = known->block_table_stride;
  to->ranges = c_api::to_cpp(known->ranges);
  to->num_rows = known->num_rows;
  to->column_begin = known->column_begin;
  to->num_columns = known->num_columns;
  to->logits = known->logits;
  to->logits_stride = known->logits_stride;
  to->num_blocks = known->num_blocks;
  to->debug_report = known->debug_report;
  fields.reserved(known->reserved | known->ranges.reserved | known->reserved1);
  return fields.status();
}

pagejit_index_logits_args IndexLogitsFamily::default_args() {
  const IndexLogitsArgs defaults;
  pagejit_index_logits_args args = {};
  args.struct_size = sizeof args;
  args.ranges.next_n = defaults.ranges.next_n;
  return args;
}

Status TopKFamily::to_cpp(const CSpec* from, Spec* to) {
  CSpec copy;
  Status refusal;
  const CSpec* known = open_struct("pagejit_top_k_spec", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_top_k_spec");
  to->row_alignment = known->row_alignment;
  to->debug = fields.flag("debug", known->debug);
  return fields.status();
}

pagejit_top_k_spec TopKFamily::to_c(const Spec& from) {
  pagejit_top_k_spec to = {};
  to.struct_size = sizeof to;
  to.row_alignment = from.row_alignment;
  to.debug = from.debug ? 1 : 0;
  return to;
}

Status TopKFamily::to_cpp(const CArgs* from, Args* to) {
  CArgs copy;
  Status refusal;
  const CArgs* known = open_struct("pagejit_top_k_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_top_k_args");
  to->logits = known->logits;
  to->logits_stride = known->logits_stride;
  to->ranges = c_api::to_cpp(known->ranges);
  to->num_rows = known->num_rows;
  to->num_columns = known->num_columns;
  to->k = known->k;
  to->indices = known->indices;
  to->indices_stride = known->indices_stride;
  to->workspace = known->workspace;
  to->workspace_bytes = known->workspace_bytes;
  to->num_splits = known->num_splits;
  to->debug_report = known->debug_report;
  fields.reserved(known->ranges.reserved | known->reserved | known->reserved1);
  return fields.status();
}

pagejit_top_k_args TopKFamily::default_args() {
  const TopKArgs defaults;
  pagejit_top_k_args args = {};
  args.struct_size = sizeof args;
  args.ranges.next_n = defaults.ranges.next_n;
  return args;
}

}  // namespace pagejit::c_api

PAGEJIT_C_SPEC_FUNCTIONS(IndexLogitsFamily, pagejit_index_logits_spec, pagejit_index_logits_args)
PAGEJIT_C_KERNEL_FUNCTIONS(IndexLogitsFamily, pagejit_index_logits_spec,
                           pagejit_index_logits_kernel, pagejit_index_logits_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(IndexLogitsFamily, pagejit_index_logits_spec,
                                  pagejit_index_logits_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(IndexLogitsFamily, pagejit_index_logits_kernel)
PAGEJIT_C_SPEC_FUNCTIONS(TopKFamily, pagejit_top_k_spec, pagejit_top_k_args)
PAGEJIT_C_KERNEL_FUNCTIONS(TopKFamily, pagejit_top_k_spec, pagejit_top_k_kernel, pagejit_top_k_args)
PAGEJIT_C_SINGLE_KERNEL_FUNCTIONS(TopKFamily, pagejit_top_k_spec, pagejit_top_k_kernel)
PAGEJIT_C_DEBUG_REPORT_FUNCTIONS(TopKFamily, pagejit_top_k_kernel)

namespace {

// A number that follows from the arguments alone.
template <class Number, class Function>
pagejit_status top_k_number(const pagejit_top_k_args* args, const char* name, Number* out,
                            pagejit_error* error, Function function) {
  using pagejit::Status;
  return pagejit::c_api::call(error, [&]() -> Status {
    pagejit::TopKArgs known;
    if (Status s = pagejit::c_api::TopKFamily::to_cpp(args, &known); !s) return s;
    if (Status s = pagejit::c_api::need(out, name); !s) return s;
    *out = function(known);
    return {};
  });
}

}  // namespace

int64_t pagejit_index_logits_stride(int64_t num_columns) {
  // Beyond it the rounding up would overflow.
  constexpr int64_t kMaxColumns = INT64_MAX - 3;
  if (num_columns < 0 || num_columns > kMaxColumns) return 0;
  return pagejit::index_logits_stride(num_columns);
}

int64_t pagejit_index_logits_rows(int64_t budget_bytes, int64_t num_columns) {
  // Columns take 4 bytes each, so more than so many fit nowhere.
  constexpr int64_t kMaxColumns = INT64_MAX / 4 - 3;
  if (budget_bytes < 0 || num_columns > kMaxColumns) return 0;
  return pagejit::index_logits_rows(budget_bytes, num_columns);
}

pagejit_status pagejit_top_k_choose_num_splits(const pagejit_top_k_args* args, int32_t* num_splits,
                                               pagejit_error* error) {
  return top_k_number(args, "num_splits", num_splits, error, [](const pagejit::TopKArgs& known) {
    return pagejit::TopKKernel::choose_num_splits(known);
  });
}

pagejit_status pagejit_top_k_workspace_bytes(const pagejit_top_k_args* args, size_t* bytes,
                                             pagejit_error* error) {
  return top_k_number(args, "bytes", bytes, error, [](const pagejit::TopKArgs& known) {
    return pagejit::TopKKernel::workspace_bytes(known);
  });
}

pagejit_status pagejit_top_k_kernel_workspace_init(const pagejit_top_k_kernel* kernel,
                                                   void* workspace, size_t workspace_bytes,
                                                   pagejit_stream stream, pagejit_error* error) {
  return pagejit::c_api::workspace_init<pagejit::c_api::TopKFamily>(kernel, workspace,
                                                                    workspace_bytes, stream, error);
}
