#include "tools/bench/attention_case.h"

namespace pagejit {

double kv_bytes(const AttentionBenchCase& c) {
  double tokens = static_cast<double>(c.num_seqs) * c.seq_len;
  if (c.chunk_queries > 0) tokens += c.chunk_seq_len;
  return tokens * c.num_kv_heads * kv_token_bytes(c.spec);
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
