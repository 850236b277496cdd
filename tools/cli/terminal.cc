#include "tools/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace pagejit::cli {
namespace {

constexpr int kUsualWidth = 80;        // of terminals that do not say it, as serial lines
constexpr int kWidestTerminal = 4096;  // COLUMNS beyond it is a slip

int width_of(int fd, const Environment& environment) {
  if (const auto columns = environment("COLUMNS")) {
    int width = 0;
    const char* end = columns->data() + columns->size();
    const auto [at, error] = std::from_chars(columns->data(), end, width);
    if (error == std::errc() && at == end && width > 0 && width <= kWidestTerminal) return width;
  }
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsualWidth;
}

bool starts_character(char c) { return (c & 0xc0) != 0x80; }

// Where the text of a line begins whose beginning is columns, two blanks apart, or blanks; columns
// beyond half of the width leave no room for it.
int text_column(const std::string& line, int width) {
  size_t begin = std::min(line.find_first_not_of(' '), line.size());
  for (size_t gap = line.find("  ", begin); gap != std::string::npos; gap = line.find("  ", gap)) {
    const size_t end = line.find_first_not_of(' ', gap);
    if (end == std::string::npos || columns_of(line.substr(0, end)) > width / 2) break;
    begin = gap = end;
  }
  return columns_of(line.substr(0, begin));
}

// The bytes of the first `columns` characters.
size_t bytes_of(const std::string& text, int columns) {
  size_t end = 0;
  while (end < text.size() && (!starts_character(text[end]) || columns-- > 0)) ++end;
  return end;
}

std::string fitted_line(std::string line, int width, int hang) {
  const std::string indentation(static_cast<size_t>(hang), ' ');
  std::string lines;
  while (columns_of(line) > width) {
    const size_t first = bytes_of(line, hang);  // never in the beginning, nor in the indentation
    size_t at = line.rfind(' ', bytes_of(line, width));
    if (at == std::string::npos || at < first) at = line.find(' ', first + 1);
    if (at == std::string::npos) break;
    const size_t next = line.find_first_not_of(' ', at);
    if (next == std::string::npos) break;
    const size_t end = line.find_last_not_of(' ', at) + 1;
    lines += line.substr(0, end) + "\n";
    line = indentation + line.substr(next);
  }
  return lines + line;
}

}  // namespace

Terminal examine_terminal(int fd, const Environment& environment) {
  Terminal terminal;
  terminal.is_terminal = isatty(fd) != 0;
  if (!terminal.is_terminal) return terminal;
  terminal.width = width_of(fd, environment);
  terminal.colour =
      environment("NO_COLOR").value_or("").empty() && environment("TERM").value_or("") != "dumb";
  return terminal;
}

std::string styled(const std::string& text, Style style, const Terminal& terminal) {
  if (!terminal.colour || style == Style::kPlain || text.empty()) return text;
  // ECMA-48's "select graphic rendition": bold, green, yellow, bold red.
  const char* sequence = style == Style::kTitle     ? "\x1b[1m"
                         : style == Style::kGood    ? "\x1b[32m"
                         : style == Style::kWarning ? "\x1b[33m"
                                                    : "\x1b[1;31m";
  return sequence + text + "\x1b[0m";
}

int columns_of(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string cut_to(const std::string& text, int width) {
  if (columns_of(text) <= width) return text;
  int columns = 0;
  size_t end = 0;
  while (end < text.size()) {
    if (starts_character(text[end]) && ++columns >= width) break;
    ++end;
  }
  return text.substr(0, end) + "…";
}

std::string wrapped(const std::string& text, int width) {
  std::istringstream words(text);
  std::string lines, word;
  int used = 0;
  while (words >> word) {
    const int columns = columns_of(word);
    const bool is_first = lines.empty();
    const bool breaks = !is_first && used + 1 + columns > width;
    if (!is_first) lines += breaks ? "\n" : " ";
    used = is_first || breaks ? columns : used + 1 + columns;
    lines += word;
  }
  return lines;
}

std::string fitted(const std::string& text, const Terminal& terminal, std::optional<int> hang) {
  if (terminal.width == 0) return text;
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    result += fitted_line(line, terminal.width, hang.value_or(text_column(line, terminal.width)));
    if (end < text.size()) result += "\n";
    begin = end + 1;
  }
  return result;
}

}  // namespace pagejit::cli
