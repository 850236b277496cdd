// The launches of an indexer's logits and of the greatest values, in the steps that their handles
// take at once and sparse attention one by one. Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>

#include "pagejit/indexer.h"
#include "pagejit/status.h"
#include "runtime/engine/loaded_kernel.h"
#include "templates/shared/indexer_params.h"

namespace pagejit {

// ---- Logits ----

// Columns of one launch at most.
int max_index_columns(const LoadedKernel& logits);

// All checks of a launch. Neither args.num_rows nor args.num_columns must be 0.
Status check_index_logits(const LoadedKernel& kernel, const IndexLogitsArgs& args);

// Enqueues what check_index_logits() passed.
Status launch_checked_index_logits(const LoadedKernel& kernel, const IndexLogitsArgs& args,
                                   Stream stream);

// Of a fault in the debug report.
std::string index_logits_sentence(int fault, int index, int64_t value);

// ---- The greatest values ----

// CTAs that occupy a GPU: about as many as the larger ones have SMs. Rows times splits at most,
// where the library chooses the splits; the result does not depend on it.
inline constexpr int kWantedTopKCtas = 128;
// The candidates of a row are counted in 32 bits.
inline constexpr int kMaxSplitTopK = INT32_MAX / kWantedTopKCtas;

// How rows are split, and the memory that this takes: kTopKMaxSplitRows counters that are zero, and
// num_rows * num_splits * k candidates. Neither is looked at where num_splits is 1.
struct TopKSplits {
  int num_splits = 1;
  unsigned* counters = nullptr;
  pagejit_shared::TopKCandidate* candidates = nullptr;
};

// All checks of a launch but those of its splits and its workspace. args.num_rows must not be 0.
Status check_top_k(const LoadedKernel& kernel, const TopKArgs& args);

// Enqueues what check_top_k() passed; num_splits and workspace of `args` are not looked at.
Status launch_checked_top_k(const LoadedKernel& kernel, const TopKArgs& args,
                            const TopKSplits& splits, Stream stream);

}  // namespace pagejit
