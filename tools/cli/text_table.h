// TextTable: rows of text in aligned columns, for people.
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagejit::cli {

enum class Align : uint8_t { kLeft, kRight };

struct TableColumn {
  std::string title;
  Align align = Align::kLeft;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns);

  // Missing cells are empty, further ones are dropped.
  void add_row(std::vector<std::string> cells);
  size_t num_rows() const { return rows_.size(); }

  // Titles, a rule, the rows; two blanks between columns, none at the ends of lines.
  std::string to_string() const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "153.2" (one decimal below 1,000, none above).
std::string format_ms(double ms);
// "1.2e-03": two digits are enough for an error.
std::string format_error(double value);
// "1,234,567".
std::string format_count(int64_t value);

}  // namespace pagejit::cli
