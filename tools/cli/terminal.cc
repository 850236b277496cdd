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

}  // namespace pagejit::cli
