#include "tools/cli/text_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pagejit::cli {
namespace {

constexpr int kNarrowestColumn = 8;   // of cut text: fewer characters say nothing
constexpr int kGap = 2;               // blanks between columns
constexpr int kNarrowestParted = 40;  // of terminals: narrower ones hold two columns of most tables

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

int TextTable::full_width(size_t column) const {
  int width = columns_of(columns_[column].title);
  for (const Row& row : rows_) width = std::max(width, columns_of(row.cells[column]));
  return width;
}

int TextTable::least_width(size_t column) const {
  const int full = full_width(column);
  if (columns_[column].align != Align::kLeft) return full;
  return std::min(full, std::max(kNarrowestColumn, columns_of(columns_[column].title)));
}

std::vector<TextTable::Columns> TextTable::parts(const Terminal& terminal) const {
  Columns all;
  int least = -kGap;
  for (size_t i = 0; i < columns_.size(); ++i) {
    all.push_back(i);
    least += kGap + least_width(i);
  }
  if (terminal.width < kNarrowestParted || least <= terminal.width) return {all};
  // With room for it the first column, which says what a row is of, is not cut.
  const int first = std::max(least_width(0), std::min(full_width(0), terminal.width / 2));
  std::vector<Columns> parts = {{0}};
  int width = first;
  for (size_t i = 1; i < columns_.size(); ++i) {
    if (width + kGap + least_width(i) > terminal.width && parts.back().size() > 1) {
      parts.push_back({0});
      width = first;
    }
    parts.back().push_back(i);
    width += kGap + least_width(i);
  }
  return parts;
}

std::vector<int> TextTable::column_widths(const Columns& part, const Terminal& terminal) const {
  std::vector<int> widths;
  int total = -kGap;
  for (const size_t column : part) {
    widths.push_back(full_width(column));
    total += widths.back() + kGap;
  }
  // The widest one gives way, a column at a time, so that several end up equally wide.
  while (terminal.width > 0 && total > terminal.width) {
    size_t widest = part.size();
    for (size_t i = 0; i < part.size(); ++i) {
      if (columns_[part[i]].align != Align::kLeft || widths[i] <= least_width(part[i])) continue;
      if (widest == part.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == part.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

std::string TextTable::part_text(const Columns& part, const Terminal& terminal) const {
  const std::vector<int> widths = column_widths(part, terminal);
  std::string text;
  const auto add_line = [&](Style style, auto cell_of) {
    std::string line;
    for (size_t i = 0; i < part.size(); ++i) {
      line += i == 0 ? "" : "  ";
      line += padded(cut_to(cell_of(i), widths[i]), widths[i], columns_[part[i]].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += styled(line, style, terminal) + "\n";
  };
  add_line(Style::kTitle, [&](size_t i) { return columns_[part[i]].title; });
  add_line(Style::kPlain,
           [&](size_t i) { return std::string(static_cast<size_t>(widths[i]), '-'); });
  for (const Row& row : rows_) {
    add_line(row.style, [&](size_t i) { return row.cells[part[i]]; });
  }
  return text;
}

std::string TextTable::to_string(const Terminal& terminal) const {
  std::string text;
  for (const Columns& part : parts(terminal)) {
    text += (text.empty() ? "" : "\n") + part_text(part, terminal);
  }
  return text;
}

std::string format_number(const char* pattern, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string format_ms(double ms) { return format_number(ms < 1000 ? "%.1f" : "%.0f", ms); }

std::string format_error(double value) { return value == 0 ? "0" : format_number("%.1e", value); }

std::string format_count(int64_t value) {
  std::string text = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = text.size(); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string format_count_of(uint64_t count, const std::string& one, const std::string& many) {
  return format_count(static_cast<int64_t>(count)) + " " + (count == 1 ? one : many);
}

std::string format_kernels(uint64_t count) { return format_count_of(count, "kernel", "kernels"); }

}  // namespace pagejit::cli
