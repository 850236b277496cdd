#include "tools/cli/text_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pagejit::cli {
namespace {

constexpr int kNarrowestColumn = 8;  // of cut text: fewer characters say nothing
constexpr int kGap = 2;              // blanks between columns

std::string padded(const std::string& text, int width, Align align) {
  const std::string blanks(static_cast<size_t>(std::max(0, width - columns_of(text))), ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

}  // namespace

TextTable::TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells, Style style) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), style});
}

std::vector<int> TextTable::column_widths(const Terminal& terminal) const {
  std::vector<int> widths;
  int total = -kGap;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width = columns_of(columns_[i].title);
    for (const Row& row : rows_) width = std::max(width, columns_of(row.cells[i]));
    widths.push_back(width);
    total += width + kGap;
  }
  // The widest one gives way, a column at a time, so that several end up equally wide.
  while (terminal.width > 0 && total > terminal.width) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const int least = std::max(kNarrowestColumn, columns_of(columns_[i].title));
      if (columns_[i].align != Align::kLeft || widths[i] <= least) continue;
      if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

std::string TextTable::to_string(const Terminal& terminal) const {
  const std::vector<int> widths = column_widths(terminal);
  std::string text;
  const auto add_line = [&](Style style, auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      line += i == 0 ? "" : "  ";
      line += padded(cut_to(cell_of(i), widths[i]), widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += styled(line, style, terminal) + "\n";
  };
  add_line(Style::kTitle, [&](size_t i) { return columns_[i].title; });
  add_line(Style::kPlain,
           [&](size_t i) { return std::string(static_cast<size_t>(widths[i]), '-'); });
  for (const Row& row : rows_) {
    add_line(row.style, [&](size_t i) { return row.cells[i]; });
  }
  return text;
}

std::string format_ms(double ms) {
  char text[32];
  std::snprintf(text, sizeof(text), ms < 1000 ? "%.1f" : "%.0f", ms);
  return text;
}

std::string format_error(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1e", value);
  return value == 0 ? "0" : text;
}

std::string format_count(int64_t value) {
  std::string text = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = text.size(); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

}  // namespace pagejit::cli
