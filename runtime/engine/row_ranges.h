// The columns that rows of logits have, from the host's side. Thread-safety: free functions without
// state.
#pragma once

#include <string>

#include "pagejit/indexer.h"
#include "pagejit/status.h"
#include "templates/shared/indexer_params.h"

namespace pagejit {

// Columns at most: sums with a tile stay within 32 bits.
inline constexpr int kMaxColumns = 0x7fff0000;

// By value; nothing is dereferenced.
Status check_next_n(int next_n, int num_rows);
Status check_row_ranges(const IndexRowRanges& ranges, int num_rows);

pagejit_shared::RowRanges row_range_params(const IndexRowRanges& ranges);

// Of a pagejit_shared::RowRangeFault.
std::string bad_range_sentence(int fault, int row, int64_t value);

}  // namespace pagejit
