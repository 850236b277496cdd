// The logits of an indexer: the launch.
#include <algorithm>

#include "pagejit/indexer.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/indexer_launch.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/engine/row_ranges.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

using Constants = pagejit_shared::IndexLogitsConfig;

Status check_keys(const Constants& c, const IndexLogitsArgs& args) {
  Status status = check_pointer("k", args.k, static_cast<uintptr_t>(c.vector_bytes));
  if (status) status = check_multiple("k_stride", args.k_stride, c.vector_bytes);
  if (!status) return status;
  if (c.block_size != 0) {
    return check_pointer("block_table", args.block_table, alignof(int32_t));
  }
  if (int64_t{args.column_begin} + args.num_columns > args.num_keys) {
    return invalid(format("num_columns {}: columns from {} on must end within num_keys ({})",
                          args.num_columns, args.column_begin, args.num_keys));
  }
  return check_pointer("k_scale", args.k_scale, alignof(float));
}

Status launch_logits(const LoadedKernel& kernel, const IndexLogitsArgs& args, Stream stream) {
  if (args.num_rows == 0 || args.num_columns == 0) return {};
  if (Status status = check_index_logits(kernel, args); !status) return status;
  return launch_checked_index_logits(kernel, args, stream);
}

}  // namespace

int max_index_columns(const LoadedKernel& logits) {
  const int64_t of_grid = int64_t{kMaxGridYZ} *
                          pagejit_shared::columns_per_cta(constants_of<IndexLogitsConfig>(logits));
  return static_cast<int>(std::min<int64_t>(of_grid, kMaxColumns));
}

Status check_index_logits(const LoadedKernel& kernel, const IndexLogitsArgs& args) {
  constexpr int kWord = 4;  // of codes of q
  const Constants& c = constants_of<IndexLogitsConfig>(kernel);
  Status status = check_count("num_rows", args.num_rows, 0, kMaxGridX);
  if (status) status = check_count("column_begin", args.column_begin, 0, kMaxColumns);
  if (status) {
    status = check_count("num_columns", args.num_columns, 0, kMaxColumns - args.column_begin);
  }
  if (status) {
    status = check_count("num_columns", args.num_columns, 0, max_index_columns(kernel));
  }
  if (status) status = check_pointer("q", args.q, kWord);
  if (status) status = check_multiple("q_stride_row", args.q_stride_row, kWord);
  if (status) status = check_multiple("q_stride_head", args.q_stride_head, kWord);
  if (status) status = check_pointer("weights", args.weights, alignof(float));
  if (status) status = check_keys(c, args);
  if (status) status = check_row_ranges(args.ranges, args.num_rows);
  if (status) status = check_pointer("logits", args.logits, alignof(float));
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  return status;
}

Status launch_checked_index_logits(const LoadedKernel& kernel, const IndexLogitsArgs& args,
                                   Stream stream) {
  const Constants& c = constants_of<IndexLogitsConfig>(kernel);
  // Contiguous keys are those of all rows.
  const int rows_per_seq = c.block_size == 0 ? args.num_rows : args.ranges.next_n;
  pagejit_shared::IndexLogitsParams params{
      .q = args.q,
      .weights = args.weights,
      .k = args.k,
      .k_scale = args.k_scale,
      .block_table = args.block_table,
      .logits = args.logits,
      .ranges = row_range_params(args.ranges),
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .q_stride_row = args.q_stride_row,
      .q_stride_head = args.q_stride_head,
      .weights_stride = args.weights_stride,
      .k_stride = args.k_stride,
      .block_table_stride = args.block_table_stride,
      .logits_stride = args.logits_stride,
      .num_blocks = args.num_blocks,
      .num_keys = args.num_keys,
      .rows_per_seq = rows_per_seq,
      .column_begin = args.column_begin,
      .num_columns = args.num_columns};
  const auto groups = [](int count, int size) {
    return static_cast<unsigned>((int64_t{count} + size - 1) / size);
  };
  const Grid grid{.x = static_cast<unsigned>(args.num_rows / rows_per_seq) *
                       groups(rows_per_seq, c.rows_per_cta),
                  .y = groups(args.num_columns, pagejit_shared::columns_per_cta(c))};
  return kernel.launch(grid, &params, stream);
}

std::string index_logits_sentence(int fault, int index, int64_t value) {
  if (fault != pagejit_shared::kBadIndexBlock) return bad_range_sentence(fault, index, value);
  return format("block_table[{}][{}] is {}: must be in [0, num_blocks)", index, value >> 32,
                static_cast<int32_t>(value & 0xffffffff));
}

Status IndexLogitsKernel::launch(const IndexLogitsArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_logits(*loaded_, args, stream); });
}
Status IndexLogitsKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status IndexLogitsKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, index_logits_sentence);
}

}  // namespace pagejit
