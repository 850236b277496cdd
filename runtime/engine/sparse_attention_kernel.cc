// Sparse attention by an indexer's choice: the checks and the launches.
#include <algorithm>
#include <string>

#include "pagejit/sparse_attention.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/attention_launch.h"
#include "runtime/engine/debug_report.h"
#include "runtime/engine/row_ranges.h"
#include "runtime/engine/sparse_call.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

// ---- Checks: what the kernels' own do not see, or would name by other names ----

Status check_columns(const LoadedSparseAttention& loaded, const SparseAttentionArgs& args) {
  const SparseAttentionSpec& spec = loaded.spec;
  const char* name = spec.contiguous_index_keys ? "num_index_keys"
                     : args.max_seq_len == 0    ? "max_blocks_per_seq * block_size"
                                                : "max_seq_len";
  const int64_t columns = SparseCall::num_columns(spec, args);
  Status status = check_count(name, columns, 0, max_index_columns(*loaded.logits));
  if (!status || columns == 0) return status;
  const int rows = SparseCall::least_rows(spec, args);
  if (index_logits_rows(args.logits_bytes, columns) >= rows) return {};
  const std::string what = rows == 1 ? "of a row" : format("of the {} rows of a sequence", rows);
  const int64_t row_bytes = index_logits_stride(columns) * static_cast<int64_t>(sizeof(float));
  return invalid(format("logits_bytes {}: must be at least {}, for the logits {} of {} columns",
                        args.logits_bytes, rows * row_bytes, what, columns));
}

Status check_counts(const LoadedSparseAttention& loaded, const SparseAttentionArgs& args) {
  const SparseAttentionSpec& spec = loaded.spec;
  Status status = check_count("num_rows", args.num_rows, 0, kMaxGridYZ);
  if (status) status = check_count("top_k", args.top_k, 1, kMaxSplitTopK);
  if (status) {
    const int most = kMaxGridYZ / pagejit_shared::group_tiles(loaded.attention().config.attention);
    status = check_count("num_kv_heads", args.num_kv_heads, 1, most);
  }
  if (status) status = check_count("num_splits", args.num_splits, 0, kMaxSplits);
  if (status) status = check_count("max_blocks_per_seq", args.max_blocks_per_seq, 0, INT32_MAX);
  if (status) status = check_count("max_seq_len", args.max_seq_len, 0, INT32_MAX);
  if (status && !spec.contiguous_index_keys) {
    status = check_next_n(args.ranges.next_n, args.num_rows);
  }
  if (status) status = check_columns(loaded, args);
  return status;
}

Status check_memory(const SparseAttentionArgs& args, size_t needed) {
  if (has_workspace(args.workspace, args.workspace_bytes, needed)) return {};
  return bad_workspace(args.workspace, args.workspace_bytes, needed,
                       format("this launch ({} rows, top_k {}, logits_bytes {})", args.num_rows,
                              args.top_k, args.logits_bytes));
}

Status check_ranges(const SparseAttentionSpec& spec, const SparseAttentionArgs& args) {
  IndexRowRanges ranges = args.ranges;
  if (spec.contiguous_index_keys) {
    ranges.next_n = 1;
    if (ranges.seq_lens != nullptr) {
      return invalid(
          "seq_lens is not null: must be where index keys are contiguous, whose rows have begins "
          "and ends");
    }
  } else if (ranges.row_begins != nullptr) {
    return invalid(
        "row_begins is not null: must be where index keys lie in blocks, whose rows begin with "
        "token 0");
  }
  Status status = check_row_ranges(ranges, args.num_rows);
  if (status && ranges.next_n > 1 && args.query_seqs == nullptr) {
    return invalid(
        format("query_seqs is null: must be a device pointer where next_n is {}", ranges.next_n));
  }
  return status;
}

Status check_indices(const SparseAttentionArgs& args) {
  if (args.indices == nullptr) return {};
  Status status = check_pointer("indices", args.indices, alignof(int32_t));
  if (!status || args.indices_stride >= args.top_k) return status;
  return invalid(
      format("indices_stride {}: must be at least top_k ({})", args.indices_stride, args.top_k));
}

// The arguments of a part have the name of the whole's without "index_".
Status with_index_name(const Status& status) {
  return status.with_message("index_" + status.message());
}

// All checks; the number of splits of the attention.
Status check_call(const LoadedSparseAttention& loaded, const SparseAttentionArgs& args,
                  const SparseCall& call, int* num_splits) {
  Status status = check_memory(args, call.workspace_bytes());
  if (status) status = check_ranges(loaded.spec, args);
  if (status) status = check_indices(args);
  if (status) status = check_attention(loaded.attention(), call.attention_args(), num_splits);
  if (!status) return status;
  return call.for_each_chunk([&](const RowChunk& chunk) {
    Status of_chunk;
    if (call.has_columns()) {
      of_chunk = with_index_name(check_index_logits(*loaded.logits, call.logits_args(chunk)));
    }
    return of_chunk ? check_top_k(*loaded.top_k, call.top_k_args(chunk)) : of_chunk;
  });
}

Status launch_sparse(const LoadedSparseAttention& loaded, const SparseAttentionArgs& args,
                     Stream stream) {
  if (args.num_rows == 0) return {};
  if (Status status = check_counts(loaded, args); !status) return status;
  const SparseCall call(loaded, args);
  int num_splits = 1;
  if (Status status = check_call(loaded, args, call, &num_splits); !status) return status;

  Status status = call.for_each_chunk([&](const RowChunk& chunk) {
    if (call.has_columns()) {
      Status of_logits =
          launch_checked_index_logits(*loaded.logits, call.logits_args(chunk), stream);
      if (!of_logits) return of_logits.with_context("index logits");
    }
    const TopKArgs top_k = call.top_k_args(chunk);
    return launch_checked_top_k(*loaded.top_k, top_k, call.top_k_splits(top_k), stream)
        .with_context("top-k");
  });
  if (!status) return status;
  return launch_checked(loaded.attention(), call.attention_args(), num_splits, stream);
}

Status empty_sparse() {
  return invalid("the SparseAttentionKernel is empty: launch one that Engine::prepare() returned");
}

Status read_reports(const LoadedSparseAttention& loaded, void* workspace, Stream stream) {
  const Driver& driver = *loaded.attention_kernel->parts.driver;
  Status status = read_report(driver, workspace, stream);
  if (!status || !loaded.spec.attention.debug) return status;
  auto* start = static_cast<char*>(workspace);
  status = read_debug_report(loaded.logits.get(), start + kLogitsReportOffset, stream,
                             index_logits_sentence)
               .with_context("index logits");
  if (!status) return status;
  return read_debug_report(loaded.top_k.get(), start + kTopKReportOffset, stream,
                           bad_range_sentence)
      .with_context("top-k");
}

// Calls use(call) where launch() would not refuse the counts.
template <class Use>
void with_counts(const LoadedSparseAttention* loaded, const SparseAttentionArgs& args, Use use) {
  if (loaded == nullptr || args.num_rows == 0) return;
  // A refusal makes a sentence, for which there may be no memory.
  (void)guarded([&]() -> Status {
    Status status = check_counts(*loaded, args);
    if (status) use(SparseCall(*loaded, args));
    return status;
  });
}

}  // namespace

Status SparseAttentionKernel::launch(const SparseAttentionArgs& args, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_sparse);
  return guarded([&] { return launch_sparse(*loaded_, args, stream); });
}

size_t SparseAttentionKernel::workspace_bytes(const SparseAttentionArgs& args) const {
  size_t bytes = 0;
  with_counts(loaded_.get(), args, [&](const SparseCall& call) { bytes = call.workspace_bytes(); });
  return bytes;
}

size_t SparseAttentionKernel::max_workspace_bytes(int num_rows, int top_k,
                                                  int64_t logits_bytes) const {
  if (loaded_ == nullptr || num_rows < 1 || top_k < 1 || logits_bytes < 0) return 0;
  const auto k = static_cast<size_t>(top_k);
  return round_up_part(loaded_->attention().max_workspace_bytes()) +
         round_up_part(kWantedTopKCtas * k * sizeof(pagejit_shared::TopKCandidate)) +
         round_up_part(static_cast<size_t>(num_rows) * k * sizeof(int32_t)) +
         static_cast<size_t>(logits_bytes);
}

int SparseAttentionKernel::num_chunks(const SparseAttentionArgs& args) const {
  int count = 0;
  with_counts(loaded_.get(), args, [&](const SparseCall& call) {
    (void)call.for_each_chunk([&](const RowChunk&) {
      ++count;
      return Status();
    });
  });
  return count;
}

Status SparseAttentionKernel::workspace_init(void* workspace, size_t workspace_bytes,
                                             Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_sparse);
  return guarded([&] {
    const Driver& driver = *loaded_->attention_kernel->parts.driver;
    return init_workspace(driver, workspace, workspace_bytes, stream);
  });
}

Status SparseAttentionKernel::read_debug_report(void* workspace, Stream stream) const {
  if (loaded_ == nullptr) return guarded(empty_sparse);
  return guarded([&] { return read_reports(*loaded_, workspace, stream); });
}

const SparseAttentionSpec& SparseAttentionKernel::spec() const {
  static const SparseAttentionSpec empty;
  if (loaded_ == nullptr) return empty;
  return loaded_->spec;
}

const SparseAttentionInfo& SparseAttentionKernel::info() const {
  static const SparseAttentionInfo empty;
  if (loaded_ == nullptr) return empty;
  return loaded_->info;
}

}  // namespace pagejit
