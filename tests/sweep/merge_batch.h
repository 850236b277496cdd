// MergeBatch: partial results to merge, as host arrays with guards, what their merge should be in
// float64, and a launch that is compared with it. Thread-safety: plain values, free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pagejit/engine.h"
#include "tools/check/device_buffer.h"

namespace pagejit {

struct MergeBatchOptions {
  MergeStatesSpec spec;
  int num_states = 2;
  int num_tokens = 16;
  int num_heads = 4;
  int64_t num_merged_tokens = -1;
  int counted_tokens = -1;       // what token_count says; negative: there is none
  bool padded = false;           // rows further apart than they need be, by different strides
  bool heads_first_lse = false;  // lse [heads, tokens], else [tokens, heads]
  float lse_range = 8.0f;        // lse is uniform in [-range, range)
  uint64_t seed = 1;
};

struct MergeBatch {
  MergeBatchOptions options;
  std::vector<uint8_t> v;  // of all states; NaN where no row lies, and in states without keys
  std::vector<float> lse;
  std::vector<uint8_t> out;    // guards before the launch
  std::vector<float> out_lse;  // as lse, of one state
  // Strides and counts, no pointers.
  MergeStatesArgs args;
};

// A tenth of the lse are +inf, a tenth -inf; some rows have no keys in any state.
MergeBatch make_merge_batch(const MergeBatchOptions& options);

// Compares with float64. "" where all is right, else the first fault. Tolerances: 2e-6 of the
// greatest |v| of the row for the sums in f32 and two roundings of the output type; 2e-6 of the
// greatest |lse| for the lse, and at least 2e-6.
std::string compare_merge(const MergeBatch& batch, const std::vector<uint8_t>& out,
                          const std::vector<float>& out_lse);

// Prepares, launches, waits and compares. "" where all is right, else what went wrong first.
std::string check_merge(Engine& engine, const DeviceSession& session,
                        const MergeBatchOptions& options, bool with_lse = true);

}  // namespace pagejit
