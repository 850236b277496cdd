#include "runtime/engine/row_ranges.h"

#include "runtime/engine/argument_check.h"
#include "runtime/format.h"

namespace pagejit {

Status check_next_n(int next_n, int num_rows) {
  if (next_n >= 1 && num_rows % next_n == 0) return {};
  return invalid(
      format("next_n {}: must be at least 1 and divide num_rows ({})", next_n, num_rows));
}

Status check_row_ranges(const IndexRowRanges& ranges, int num_rows) {
  if (Status status = check_next_n(ranges.next_n, num_rows); !status) return status;
  if (ranges.seq_lens == nullptr) {
    if (misaligned(ranges.row_begins, alignof(int32_t))) {
      return bad_pointer("row_begins", ranges.row_begins, alignof(int32_t));
    }
    if (ranges.row_ends == nullptr) {
      return invalid("row_ends is null: must be a device pointer where seq_lens is null");
    }
    return check_pointer("row_ends", ranges.row_ends, alignof(int32_t));
  }
  if (ranges.row_begins != nullptr || ranges.row_ends != nullptr) {
    return invalid(format("{} is not null: must be where there are seq_lens",
                          ranges.row_ends != nullptr ? "row_ends" : "row_begins"));
  }
  return check_pointer("seq_lens", ranges.seq_lens, alignof(int32_t));
}

pagejit_shared::RowRanges row_range_params(const IndexRowRanges& ranges) {
  return {.row_begins = ranges.row_begins,
          .row_ends = ranges.row_ends,
          .seq_lens = ranges.seq_lens,
          .next_n = ranges.next_n};
}

std::string bad_range_sentence(int fault, int row, int64_t value) {
  return fault == pagejit_shared::kBadRowBegin
             ? format("row {} begins at {}: must not be negative", row, value)
             : format("row {} ends at {}: must be at most the number of columns", row, value);
}

}  // namespace pagejit
