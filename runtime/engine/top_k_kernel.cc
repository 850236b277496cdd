// The greatest values of rows: the launch.
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

constexpr uintptr_t kTopKAlign = 16;

// More CTAs shorten the parts, and lengthen the list of what they have found, which one CTA goes
// through: the sum is least where parts and list are equally long.
int balanced_splits(int num_columns, int k) {
  int splits = 1;
  while ((int64_t{splits} + 1) * (splits + 1) * k <= num_columns) ++splits;
  return splits;
}

size_t bytes_for(const TopKArgs& args, int num_splits) {
  if (num_splits <= 1 || args.num_rows < 1 || args.k < 1) return 0;
  return static_cast<size_t>(pagejit_shared::kTopKCandidatesOffset) +
         static_cast<size_t>(args.num_rows) * static_cast<size_t>(num_splits) *
             static_cast<size_t>(args.k) * sizeof(pagejit_shared::TopKCandidate);
}

Status check_splits(const TopKArgs& args, int num_splits) {
  Status status = check_count("num_splits", args.num_splits, 0, kWantedTopKCtas);
  if (!status || num_splits == 1) return status;
  if (args.num_rows > pagejit_shared::kTopKMaxSplitRows) {
    return invalid(format("num_splits {}: must be 0 or 1 for more than {} rows ({})", num_splits,
                          pagejit_shared::kTopKMaxSplitRows, args.num_rows));
  }
  if (Status s = check_count("k", args.k, 1, kMaxSplitTopK); !s) return s;
  const size_t needed = bytes_for(args, num_splits);
  if (bad(args.workspace, kTopKAlign) || args.workspace_bytes < needed) {
    return Status(StatusCode::kWorkspace,
                  format("workspace {} of {} bytes: must be {} bytes, aligned to {}",
                         args.workspace, args.workspace_bytes, needed, kTopKAlign));
  }
  return {};
}

Status launch_top_k(const LoadedKernel& kernel, const TopKArgs& args, Stream stream) {
  if (args.num_rows == 0) return {};
  if (Status status = check_top_k(kernel, args); !status) return status;
  const int num_splits = args.num_splits != 0        ? args.num_splits
                         : args.workspace == nullptr ? 1
                                                     : TopKKernel::choose_num_splits(args);
  if (Status status = check_splits(args, num_splits); !status) return status;
  auto* workspace = static_cast<unsigned char*>(args.workspace);
  const TopKSplits splits{
      .num_splits = num_splits,
      .counters = reinterpret_cast<unsigned*>(workspace),
      .candidates = workspace == nullptr ? nullptr
                                         : reinterpret_cast<pagejit_shared::TopKCandidate*>(
                                               workspace + pagejit_shared::kTopKCandidatesOffset)};
  return launch_checked_top_k(kernel, args, splits, stream);
}

}  // namespace

Status check_top_k(const LoadedKernel& kernel, const TopKArgs& args) {
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
  return status;
}

Status launch_checked_top_k(const LoadedKernel& kernel, const TopKArgs& args,
                            const TopKSplits& splits, Stream stream) {
  pagejit_shared::TopKParams params{
      .logits = args.logits,
      .indices = args.indices,
      .ranges = row_range_params(args.ranges),
      .report = static_cast<pagejit_shared::DebugReport*>(args.debug_report),
      .counters = splits.counters,
      .candidates = splits.candidates,
      .logits_stride = args.logits_stride,
      .indices_stride = args.indices_stride,
      .num_columns = args.num_columns,
      .k = args.k,
      .num_splits = splits.num_splits};
  const Grid grid{.x = static_cast<unsigned>(args.num_rows),
                  .y = static_cast<unsigned>(splits.num_splits)};
  return kernel.launch(grid, &params, stream);
}

Status TopKKernel::launch(const TopKArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&] { return launch_top_k(*loaded_, args, stream); });
}
int TopKKernel::choose_num_splits(const TopKArgs& args) {
  if (args.num_rows < 1 || args.k < 1 || args.k > kMaxSplitTopK) return 1;
  return std::max(
      1, std::min(kWantedTopKCtas / args.num_rows, balanced_splits(args.num_columns, args.k)));
}
size_t TopKKernel::workspace_bytes(const TopKArgs& args) {
  return bytes_for(args, args.num_splits != 0 ? args.num_splits : choose_num_splits(args));
}
Status TopKKernel::workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_handle);
  return guarded([&]() -> Status {
    constexpr auto kCounters = static_cast<size_t>(pagejit_shared::kTopKCandidatesOffset);
    if (bad(workspace, kTopKAlign) || workspace_bytes < kCounters) {
      return Status(StatusCode::kWorkspace,
                    format("workspace {} of {} bytes: must be at least {} bytes, aligned to {}",
                           workspace, workspace_bytes, kCounters, kTopKAlign));
    }
    const Driver& driver = *loaded_->parts.driver;
    return driver.check(driver.cuMemsetD8Async(reinterpret_cast<uintptr_t>(workspace), 0, kCounters,
                                               static_cast<CUstream>(stream)),
                        "cuMemsetD8Async");
  });
}

Status TopKKernel::init_debug_report(void* report, Stream stream) const {
  return pagejit::init_debug_report(loaded_.get(), report, stream);
}
Status TopKKernel::read_debug_report(void* report, Stream stream) const {
  return pagejit::read_debug_report(loaded_.get(), report, stream, bad_range_sentence);
}

}  // namespace pagejit
