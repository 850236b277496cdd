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
  const size_t num_rows = static_cast<size_t>(batch.num_seqs) * batch.num_heads;
  std::vector<double> out(num_rows * head_size);
  std::vector<double> lse(num_rows);
  paged_attention(spec, batch.host_args(), out.data(), lse.data());

  std::vector<float> q(head_size);
  std::vector<double> want(head_size);
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int64_t length = batch.seq_lens[seq];
    for (int head = 0; head < batch.num_heads; ++head) {
      for (int i = 0; i < head_size; ++i) q[i] = batch.q.at(batch.q_index(seq, head) + i);
      const int kv_head = head / spec.group_size;
      const int64_t from = kv_head * length * head_size;
      HeadProblem problem{q.data(),
                          batch.dense_k[seq].data() + from,
                          batch.dense_v[seq].data() + from,
                          length,
                          head_size,
                          batch.scale};
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
      for (int i = 0; i < head_size; ++i) {
        ASSERT_NEAR(out[row * head_size + i], want[i], tolerance)
            << "sequence " << seq << " head " << head << " element " << i;
      }
    }
  }
}

}  // namespace pagejit
