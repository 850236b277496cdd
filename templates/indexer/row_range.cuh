// Which columns of its logits a row has.
#pragma once

using pagejit_shared::RowRanges;

struct RowRange {
  int begin;
  int end;  // not below begin
};

// As the caller gives it.
PAGEJIT_DEVICE RowRange given_range(const RowRanges& ranges, int row) {
  if (ranges.seq_lens != nullptr) {
    const int seq_len = dev::load_global_nc(ranges.seq_lens + row / ranges.next_n);
    return {0, seq_len - ranges.next_n + row % ranges.next_n + 1};
  }
  const int begin = ranges.row_begins == nullptr ? 0 : dev::load_global_nc(ranges.row_begins + row);
  return {begin, dev::load_global_nc(ranges.row_ends + row)};
}

// Within [0, end).
PAGEJIT_DEVICE RowRange row_range(const RowRanges& ranges, int row, int end) {
  RowRange range = given_range(ranges, row);
  if (range.begin < 0) range.begin = 0;
  if (range.end > end) range.end = end;
  if (range.end < range.begin) range.end = range.begin;
  return range;
}

// Reports the lowest row with a range that is not within [0, end).
PAGEJIT_DEVICE void check_range(const RowRanges& ranges, pagejit_shared::DebugReport* report,
                                int row, int end) {
  const RowRange range = given_range(ranges, row);
  if (range.begin < 0) {
    report_lowest(&report->findings[pagejit_shared::kBadRowBegin], row,
                  [&](int i) { return given_range(ranges, i).begin; });
  }
  if (range.end > end) {
    report_lowest(&report->findings[pagejit_shared::kBadRowEnd], row,
                  [&](int i) { return given_range(ranges, i).end; });
  }
}
