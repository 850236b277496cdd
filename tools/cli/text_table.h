// TextTable: rows of text in aligned columns, for people.
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/terminal.h"

namespace pagejit::cli {

enum class Align : uint8_t { kLeft, kRight };

struct TableColumn {
  std::string title;
  Align align = Align::kLeft;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns);

  // Missing cells are empty, further ones are dropped. `style`: of the whole row.
  void add_row(std::vector<std::string> cells, Style style = Style::kPlain);
  size_t num_rows() const { return rows_.size(); }

  // Titles, a rule, the rows; two blanks between columns, none at the ends of lines. Where that is
  // wider than the terminal, the widest columns of text (Align::kLeft) are cut, numbers never;
  // where it still is, further columns follow below, each part beginning with the first column.
  // What is no terminal gets every character.
  std::string to_string(const Terminal& terminal = {}) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Style style;
  };
  using Columns = std::vector<size_t>;  // by number

  int full_width(size_t column) const;
  int least_width(size_t column) const;
  std::vector<Columns> parts(const Terminal& terminal) const;
  std::vector<int> column_widths(const Columns& part, const Terminal& terminal) const;
  std::string part_text(const Columns& part, const Terminal& terminal) const;

  std::vector<TableColumn> columns_;
  std::vector<Row> rows_;
};

// A pattern of printf for one double, e.g. "%.1f %%".
std::string format_number(const char* pattern, double value);
// "153.2" (one decimal below 1,000, none above).
std::string format_ms(double ms);
// "1.2e-03": two digits are enough for an error.
std::string format_error(double value);
// "1,234,567".
std::string format_count(int64_t value);
// "1 entry", "1,234 entries".
std::string format_count_of(uint64_t count, const std::string& one, const std::string& many);
// "1 kernel", "1,234 kernels".
std::string format_kernels(uint64_t count);

}  // namespace pagejit::cli
