// The comparison of a launch's results with the float64 reference, and the rule by which they pass.
// Pure: knows no device. Thread-safety: free functions without state.
//
// The yardstick is the naive computation in the same types (attention_reference.h; K and V of 8
// bits are exact in f16, in which it then computes): what an engine's eager code gives. For each
// query token the greatest error of the kernel may be twice that of the naive one, and so may be
// the mean error. Per query token, because results of n keys are of the size of sqrt(1/n): the
// rounding of a query that sees few would hide a key that another one lost. compare.cc has the
// reason for each constant. One rounding more than the naive error always passes: the result is
// rounded at last, and a greater element takes a greater error. With scales of tokens so does the
// error of a sum in float32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/reference/attention_batch.h"
#include "tools/reference/attention_reference.h"

namespace pagejit {

// What the results of a batch should be, and how far off they may be. Rows are (query token, head).
struct ReferenceResults {
  std::vector<double> out;            // [num_queries, num_heads, head_size]
  std::vector<double> lse;            // [num_queries, num_heads]
  std::vector<float> naive;           // as out
  std::vector<double> lse_tolerance;  // as lse
  std::vector<double>
      rounding;  // as lse: bound of what rounding P and the result to their types can do
};
ReferenceResults compute_reference(const AttentionBatch& batch);

// What a launch left in the result buffers, as AttentionBatch lays them out, guards included.
struct AttentionResults {
  ElementBuffer out;
  std::vector<float> lse;
};

struct WorstPosition {
  int seq = -1;
  int query = -1;  // query token, counted over all sequences
  int head = -1;
  int element = -1;
  double got = 0;
  double want = 0;
};

struct CheckReport {
  int64_t tokens = 0;    // of all sequences
  int64_t elements = 0;  // of the result
  double max_error = 0;  // absolute, against float64
  double mean_error = 0;
  double naive_max_error = 0;
  double naive_mean_error = 0;
  double lse_max_error = 0;  // 0 where lse was not wanted
  double lse_tolerance = 0;  // at the position of lse_max_error
  double worst_ratio =
      0;  // greatest error over its limit, over all query tokens and lse: at most 1 passes
  int num_splits = 1;   // that the launch used
  WorstPosition worst;  // of `out`, by error over limit; the first NaN where there is one
  bool passed = false;
  std::string sentence;  // the verdict, with the worst position where it failed
};

// num_splits is what the launch used; it only goes into the report.
CheckReport compare_results(const AttentionBatch& batch, const ReferenceResults& reference,
                            const AttentionResults& results, bool with_lse, int num_splits);

}  // namespace pagejit
