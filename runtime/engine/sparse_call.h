// SparseCall: one call of sparse attention, its chunks of rows, its workspace, and the arguments
// that the kernels get. Thread-safety: constant once it is made.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pagejit/sparse_attention.h"
#include "runtime/engine/argument_check.h"
#include "runtime/engine/indexer_launch.h"
#include "runtime/engine/loaded_sparse_attention.h"

namespace pagejit {

// The attention workspace has room behind its header, which workspace_init() clears.
inline constexpr size_t kLogitsReportOffset = sizeof(pagejit_shared::WorkspaceHeader);
inline constexpr size_t kTopKReportOffset =
    kLogitsReportOffset + sizeof(pagejit_shared::DebugReport);
static_assert(kTopKReportOffset + sizeof(pagejit_shared::DebugReport) <=
              pagejit_shared::kCountersOffset);
// The top-k and attention follow each other, and both leave zeros.
static_assert(pagejit_shared::kTopKMaxSplitRows <= pagejit_shared::kMergeCounterCapacity);

// Rows whose logits there are at the same time.
struct RowChunk {
  int first = 0;
  int num_rows = 0;
};

// The counts must have been checked; loaded and arguments must outlive it.
class SparseCall {
 public:
  SparseCall(const LoadedSparseAttention& loaded, const SparseAttentionArgs& args);

  // Of any row. This and least_rows() need no checked counts.
  static int64_t num_columns(const SparseAttentionSpec& spec, const SparseAttentionArgs& args);
  // How many rows must fit in logits_bytes.
  static int least_rows(const SparseAttentionSpec& spec, const SparseAttentionArgs& args);

  size_t workspace_bytes() const { return bytes_; }

  // Calls visit(chunk), which returns a Status, until one is not ok.
  template <class Visit>
  Status for_each_chunk(Visit visit) const;

  // Of a launch, whose workspace has been checked. The ranges are those of the chunk.
  IndexLogitsArgs logits_args(const RowChunk& chunk) const;
  TopKArgs top_k_args(const RowChunk& chunk) const;
  TopKSplits top_k_splits(const TopKArgs& top_k) const;
  AttentionArgs attention_args() const;

  bool has_columns() const { return columns_ > 0; }

 private:
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(args_.workspace) + offset);
  }
  bool has_index_blocks() const { return !loaded_.spec.contiguous_index_keys; }
  int sequence_of(const RowChunk& chunk) const { return chunk.first / rows_per_seq_; }
  IndexRowRanges ranges_of(const RowChunk& chunk) const;
  // What the numbers of splits depend on; no pointer.
  AttentionArgs attention_counts() const;
  TopKArgs top_k_counts(const RowChunk& chunk) const;
  // What the top-k writes and attention reads.
  int32_t* lists() const {
    return args_.indices != nullptr ? args_.indices : at<int32_t>(indices_);
  }
  int64_t lists_stride() const {
    return args_.indices != nullptr ? args_.indices_stride : args_.top_k;
  }
  void lay_out();

  const LoadedSparseAttention& loaded_;
  const SparseAttentionArgs& args_;
  const int columns_;
  const int64_t logits_stride_;
  const int rows_per_seq_;  // contiguous keys are those of all rows
  int rows_that_fit_ = 0;
  // Of the workspace, in bytes from its start; sparse_attention.h describes them.
  size_t candidates_ = 0;
  size_t indices_ = 0;
  size_t logits_ = 0;
  size_t bytes_ = 0;
};

// Whole sequences as long as one fits, else parts of one after the other.
template <class Visit>
Status SparseCall::for_each_chunk(Visit visit) const {
  RowChunk chunk;
  for (; chunk.first < args_.num_rows; chunk.first += chunk.num_rows) {
    const int whole = rows_that_fit_ / rows_per_seq_ * rows_per_seq_;
    const int left =
        whole > 0 ? args_.num_rows - chunk.first : rows_per_seq_ - chunk.first % rows_per_seq_;
    chunk.num_rows = std::min(whole > 0 ? whole : rows_that_fit_, left);
    if (Status status = visit(chunk); !status) return status;
  }
  return {};
}

}  // namespace pagejit
