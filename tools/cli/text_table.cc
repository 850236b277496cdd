#include "tools/cli/text_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pagejit::cli {
namespace {

// Terminal columns of UTF-8 text: bytes that start a character.
size_t width_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

std::string padded(const std::string& text, size_t width, Align align) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

}  // namespace

TextTable::TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::to_string() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto add_line = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      line += (i == 0 ? "" : "  ") + padded(cell_of(i), widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](size_t i) { return columns_[i].title; });
  add_line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) {
    add_line([&](size_t i) { return row[i]; });
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
