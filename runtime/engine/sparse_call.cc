#include "runtime/engine/sparse_call.h"

namespace pagejit {

using pagejit_shared::TopKCandidate;

SparseCall::SparseCall(const LoadedSparseAttention& loaded, const SparseAttentionArgs& args)
    : loaded_(loaded),
      args_(args),
      columns_(static_cast<int>(num_columns(loaded.spec, args))),
      logits_stride_(index_logits_stride(columns_)),
      rows_per_seq_(loaded.spec.contiguous_index_keys ? args.num_rows : args.ranges.next_n) {
  rows_that_fit_ = args.num_rows;
  if (has_columns()) {
    rows_that_fit_ = static_cast<int>(
        std::min<int64_t>(index_logits_rows(args.logits_bytes, columns_), args.num_rows));
  }
  lay_out();
}

int64_t SparseCall::num_columns(const SparseAttentionSpec& spec, const SparseAttentionArgs& args) {
  if (spec.contiguous_index_keys) return args.num_index_keys;
  const int64_t capacity = int64_t{args.max_blocks_per_seq} * spec.attention.block_size;
  return args.max_seq_len == 0 ? capacity : std::min<int64_t>(args.max_seq_len, capacity);
}

int SparseCall::least_rows(const SparseAttentionSpec& spec, const SparseAttentionArgs& args) {
  // A row of these has its range by its place among those of its sequence.
  return spec.contiguous_index_keys || args.ranges.seq_lens == nullptr ? 1 : args.ranges.next_n;
}

AttentionArgs SparseCall::attention_counts() const {
  AttentionArgs to;
  to.num_seqs = args_.num_rows;
  to.num_kv_heads = args_.num_kv_heads;
  // What lies behind the columns is padding.
  to.max_list_len = std::min(args_.top_k, columns_);
  to.num_splits = args_.num_splits;
  return to;
}

TopKArgs SparseCall::top_k_counts(const RowChunk& chunk) const {
  TopKArgs to;
  to.num_rows = chunk.num_rows;
  to.num_columns = columns_;
  to.k = args_.top_k;
  return to;
}

void SparseCall::lay_out() {
  const LoadedAttention& attention = loaded_.attention();
  const AttentionArgs counts = attention_counts();
  // The header and the counters are there even where nothing is split.
  const size_t attention_bytes =
      std::max(static_cast<size_t>(pagejit_shared::kPartialsOffset),
               attention.workspace_bytes(attention.split_sequences(counts), counts.num_kv_heads,
                                         attention.num_splits(counts)));
  size_t candidate_bytes = 0;
  int most_rows = 0;
  const auto k = static_cast<size_t>(args_.top_k);
  (void)for_each_chunk([&](const RowChunk& chunk) {
    const int num_splits = TopKKernel::choose_num_splits(top_k_counts(chunk));
    const size_t parts = num_splits == 1 ? 0 : static_cast<size_t>(chunk.num_rows * num_splits);
    candidate_bytes = std::max(candidate_bytes, parts * k * sizeof(TopKCandidate));
    most_rows = std::max(most_rows, chunk.num_rows);
    return Status();
  });
  const size_t index_bytes = static_cast<size_t>(args_.num_rows) * k * sizeof(int32_t);
  candidates_ = round_up_part(attention_bytes);
  indices_ = candidates_ + round_up_part(candidate_bytes);
  logits_ = indices_ + (args_.indices != nullptr ? 0 : round_up_part(index_bytes));
  bytes_ = logits_ + static_cast<size_t>(most_rows * logits_stride_) * sizeof(float);
}

IndexRowRanges SparseCall::ranges_of(const RowChunk& chunk) const {
  IndexRowRanges ranges = args_.ranges;
  // Of a part of a sequence all rows are one's.
  ranges.next_n = has_index_blocks() ? std::min(rows_per_seq_, chunk.num_rows) : 1;
  if (ranges.row_begins != nullptr) ranges.row_begins += chunk.first;
  if (ranges.row_ends != nullptr) ranges.row_ends += chunk.first;
  if (ranges.seq_lens != nullptr) ranges.seq_lens += sequence_of(chunk);
  return ranges;
}

IndexLogitsArgs SparseCall::logits_args(const RowChunk& chunk) const {
  IndexLogitsArgs to;
  to.q = static_cast<const char*>(args_.index_q) + chunk.first * args_.index_q_stride_row;
  to.q_stride_row = args_.index_q_stride_row;
  to.q_stride_head = args_.index_q_stride_head;
  to.weights = args_.index_weights + chunk.first * args_.index_weights_stride;
  to.weights_stride = args_.index_weights_stride;
  to.k = args_.index_k;
  to.k_stride = args_.index_k_stride;
  to.k_scale = args_.index_k_scale;
  to.num_keys = args_.num_index_keys;
  if (has_index_blocks()) {
    to.block_table = args_.block_table + sequence_of(chunk) * args_.block_table_stride;
    to.block_table_stride = args_.block_table_stride;
  }
  to.ranges = ranges_of(chunk);
  to.num_rows = chunk.num_rows;
  to.num_columns = columns_;
  to.logits = at<float>(logits_);
  to.logits_stride = logits_stride_;
  // 0: not checked.
  to.num_blocks = args_.num_blocks == 0 ? INT64_MAX : args_.num_blocks;
  to.debug_report = at<void>(kLogitsReportOffset);
  return to;
}

TopKArgs SparseCall::top_k_args(const RowChunk& chunk) const {
  TopKArgs to = top_k_counts(chunk);
  to.logits = at<float>(logits_);
  to.logits_stride = logits_stride_;
  to.ranges = ranges_of(chunk);
  to.indices_stride = lists_stride();
  to.indices = lists() + chunk.first * to.indices_stride;
  to.debug_report = at<void>(kTopKReportOffset);
  return to;
}

TopKSplits SparseCall::top_k_splits(const TopKArgs& top_k) const {
  return {.num_splits = TopKKernel::choose_num_splits(top_k),
          .counters = at<unsigned>(pagejit_shared::kCountersOffset),
          .candidates = at<TopKCandidate>(candidates_)};
}

AttentionArgs SparseCall::attention_args() const {
  AttentionArgs to = attention_counts();
  to.q = args_.q;
  to.q_stride_token = args_.q_stride_token;
  to.q_stride_head = args_.q_stride_head;
  to.q_scale = args_.q_scale;
  to.k_cache = args_.k_cache;
  to.k_strides = args_.k_strides;
  to.k_scale = args_.k_scale;
  to.kv_scale_stride = args_.kv_scale_stride;
  to.num_blocks = args_.num_blocks;
  to.block_table = args_.block_table;
  to.block_table_stride = args_.block_table_stride;
  to.max_blocks_per_seq = args_.max_blocks_per_seq;
  to.token_lists = lists();
  to.token_list_stride = lists_stride();
  to.query_seqs = args_.query_seqs;
  to.out = args_.out;
  to.out_stride_token = args_.out_stride_token;
  to.out_stride_head = args_.out_stride_head;
  to.out_scale = args_.out_scale;
  to.lse = args_.lse;
  to.soft_cap = args_.soft_cap;
  to.sinks = args_.sinks;
  to.scale = args_.scale;
  to.workspace = args_.workspace;
  to.workspace_bytes = args_.workspace_bytes;
  return to;
}

}  // namespace pagejit
