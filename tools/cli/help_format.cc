#include "tools/cli/help_format.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace pagejit::cli {
namespace {

constexpr int kNameColumns = 32;           // "  --bidirectional-ranges" and a type fit most often
constexpr int kNarrowestDescription = 30;  // narrower ones are harder to read than broken lines

int description_width(const Terminal& terminal) {
  if (terminal.width == 0) return 0;
  return std::max(terminal.width - kNameColumns, kNarrowestDescription);
}

// A command of an example over several lines, as a shell takes it: broken at blanks outside of
// quotes, with a backslash at the ends.
std::string broken_command(std::string line, int width) {
  constexpr int kIndentation = 6;  // of what follows: more than the two of an example
  std::string lines;
  while (columns_of(line) > width) {
    size_t at = std::string::npos;
    char quote = 0;
    for (size_t i = kIndentation; i < line.size(); ++i) {
      const char c = line[i];
      if (quote == 0 && c == ' ' && (at == std::string::npos || static_cast<int>(i) + 2 <= width)) {
        at = i;
      } else if (c == '\'' || c == '"') {
        quote = quote == 0 ? c : quote == c ? '\0' : quote;
      }
    }
    if (at == std::string::npos) break;
    lines += line.substr(0, at) + " \\\n";
    line = std::string(kIndentation, ' ') + line.substr(at + 1);
  }
  return lines + line;
}

bool is_prose(const std::string& line) { return !line.empty() && line[0] != ' '; }

}  // namespace

HelpFormatter::HelpFormatter(const Terminal& terminal)
    : terminal_(terminal), width_(description_width(terminal)) {
  column_width(kNameColumns);
}

std::string HelpFormatter::fit(const std::string& description) const {
  return width_ == 0 ? description : wrapped(description, width_);
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return fit(CLI::Formatter::make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::stringstream text;
  CLI::detail::format_help(text, command->get_name(), fit(command->get_description()),
                           kNameColumns);
  return text.str();
}

std::string HelpFormatter::make_description(const CLI::App* command) const {
  return fitted(CLI::Formatter::make_description(command), terminal_);
}

std::string HelpFormatter::make_usage(const CLI::App* command, std::string name) const {
  return fitted(CLI::Formatter::make_usage(command, std::move(name)), terminal_);
}

std::string HelpFormatter::make_footer(const CLI::App* command) const {
  std::string footer = CLI::Formatter::make_footer(command);
  if (terminal_.width == 0) return footer;
  std::istringstream lines(footer);
  std::string text, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += wrapped(paragraph, terminal_.width) + "\n";
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    // A sentence's lines are those of a wide page.
    if (is_prose(line)) {
      paragraph += line + " ";
      continue;
    }
    end_paragraph();
    text += broken_command(line, terminal_.width) + "\n";
  }
  end_paragraph();
  return text;
}

}  // namespace pagejit::cli
