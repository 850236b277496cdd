// The two float64 references against each other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/reference/attention_batch.h"
#include "tools/reference/attention_reference.h"

namespace pagejit {

// Of a batch of one query token each. Also proves that the batch builder puts every token where its
// block table says, and nothing of use elsewhere.
inline void expect_paged_equals_dense(const AttentionBatch& batch) {
  const KernelSpec& spec = batch.options.spec;
  const int head_size = spec.head_size;
  const int head_size_v = batch.head_size_v();
  const size_t num_rows = static_cast<size_t>(batch.num_seqs) * batch.num_heads;
  std::vector<double> out(num_rows * head_size_v);
  std::vector<double> lse(num_rows);
  paged_attention(spec, batch.host_args(), out.data(), lse.data());

  std::vector<float> q(head_size);
  std::vector<double> want(head_size_v);
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int64_t length = batch.seq_lens[seq];
    for (int head = 0; head < batch.num_heads; ++head) {
      for (int i = 0; i < head_size; ++i) q[i] = batch.q.at(batch.q_index(seq, head) + i);
      const int kv_head = head / spec.group_size;
      const int64_t from = kv_head * length;
      HeadProblem problem{.q = q.data(),
                          .k = batch.dense_k[seq].data() + from * head_size,
                          .v = batch.dense_v[seq].data() + from * head_size_v,
                          .num_tokens = length,
                          .head_size = head_size,
                          .head_size_v = head_size_v,
                          .rules = {.scale = batch.scale}};
      if (spec.token_scales) {
        problem.k_scales = batch.dense_k_scale[seq].data() + from;
        problem.v_scales = batch.dense_v_scale[seq].data() + from;
      }
      problem.scales = batch.scales_of(kv_head);
      double want_lse = 0;
      dense_attention(problem, want.data(), &want_lse);
      const size_t row = static_cast<size_t>(seq) * batch.num_heads + head;
      if (length == 0) {
        ASSERT_EQ(lse[row], -std::numeric_limits<double>::infinity());
      } else {
        // Two roundings of float64 at the size of the score.
        ASSERT_NEAR(lse[row], want_lse, 1e-12 * std::max(1.0, std::abs(want_lse)));
      }
      // A score of 5e4 has a step of 7e-12 in float64, so its exponential is no better than that.
      const double tolerance = batch.options.logits == LogitRegime::kNormal ? 1e-12 : 1e-10;
      for (int i = 0; i < head_size_v; ++i) {
        ASSERT_NEAR(out[row * head_size_v + i], want[i], tolerance)
            << "sequence " << seq << " head " << head << " element " << i;
      }
    }
  }
}

}  // namespace pagejit
