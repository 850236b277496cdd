// The greatest values of rows: the launch.
#include "pagejit/indexer.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/guard.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/engine/row_ranges.h"

namespace pagejit {
namespace {

Status launch_top_k(const LoadedKernel& kernel, const TopKArgs& args, Stream stream) {
  if (args.num_rows == 0) return {};
  const pagejit_shared::TopKConfig& c = constants_of<TopKConfig>(kernel);
  Status status = check_count("num_rows", args.num_rows, 0, kMaxGridX);
  if (status) status = check_count("num_columns", args.num_columns, 0, kMaxColumns);
  if (status) status = check_count("k", args.k, 1, INT32_MAX);
  if (status) {
    status = check_pointer("logits", args.logits, c.vector_elements * sizeof(float));
  }
  if (status) status = check_stride("logits_stride", args.logits_stride, c.vector_elements);
  if (status) status = check_row_ranges(args.ranges, args.num_rows);
  if (status) status = check_pointer("indices", args.indices, alignof(int32_t));
  if (status && c.debug) status = check_pointer("debug_report", args.debug_report, 16);
  if (!status) return status;
  pagejit_shared::TopKParams params{
      .logits = args.logits,
      .indices = args.indices,
      .ranges = row_range_params(args.ranges),
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .logits_stride = args.logits_stride,
      .indices_stride = args.indices_stride,
      .num_columns = args.num_columns,
      .k = args.k};
  return kernel.launch({.x = static_cast<unsigned>(args.num_rows)}, &params, stream);
}

}  // namespace

Status TopKKernel::launch(const TopKArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_top_k(*loaded_, args, stream); });
}
Status TopKKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status TopKKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, bad_range_sentence);
}

}  // namespace pagejit
