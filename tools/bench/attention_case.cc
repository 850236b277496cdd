#include "tools/bench/attention_case.h"

#include <algorithm>
#include <cstdint>

namespace pagejit {
namespace {

// Tokens of a sequence that its last num_queries tokens see.
int64_t tokens_read(const AttentionBenchCase& c, int64_t seq_len, int64_t num_queries) {
  const int64_t first_query = std::max<int64_t>(0, seq_len - num_queries);
  int64_t begin = 0;
  if (c.spec.window && c.window_left >= 0) begin = first_query - c.window_left;
  if (c.spec.chunked && c.chunk_size > 0) {
    begin = std::max(begin, first_query - first_query % c.chunk_size);
  }
  const int64_t tokens = seq_len - std::max<int64_t>(0, begin);
  if (!c.spec.block_sparse || num_queries != 1) return tokens;
  const BlockSparseArgs& sparse = c.block_sparse;
  const int64_t before = first_query / sparse.block_size;  // blocks before the query's own
  const int64_t local = std::min<int64_t>(sparse.local_blocks, before + 1);
  const int64_t others = (before + 1 - local) / sparse.vert_stride;
  const int64_t own = local > 0 ? seq_len - (before + 1 - local) * sparse.block_size : 0;
  return std::min(tokens, own + others * sparse.block_size);
}

}  // namespace

double kv_bytes(const AttentionBenchCase& c) {
  double tokens = static_cast<double>(c.num_seqs) * c.seq_len;
  if (c.chunk_queries > 0) tokens += c.chunk_seq_len;
  return tokens * c.num_kv_heads * kv_token_bytes(c.spec);
}

double read_bytes(const AttentionBenchCase& c) {
  int64_t tokens = c.num_seqs * tokens_read(c, c.seq_len, 1);
  if (c.chunk_queries > 0) tokens += tokens_read(c, c.chunk_seq_len, c.chunk_queries);
  return static_cast<double>(std::max<int64_t>(tokens, 1)) * c.num_kv_heads *
         kv_token_bytes(c.spec);
}

double query_bytes(const AttentionBenchCase& c) {
  const double rows = static_cast<double>(c.query_tokens()) * c.num_kv_heads * c.spec.group_size;
  return rows *
         (c.spec.head_size * data_type_bits(c.spec.q_dtype) +
          value_head_size(c.spec) * data_type_bits(c.spec.out_dtype)) /
         8;
}

double flops(const AttentionBenchCase& c) {
  const bool is_causal = c.spec.causality != Causality::kNone;
  const double seen = c.chunk_seq_len - (is_causal ? c.chunk_queries / 2.0 : 0);
  const double pairs = static_cast<double>(c.num_seqs) * c.seq_len + c.chunk_queries * seen;
  return 2 * pairs * c.num_kv_heads * c.spec.group_size *
         (c.spec.head_size + value_head_size(c.spec));
}

}  // namespace pagejit
