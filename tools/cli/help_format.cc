#include "tools/cli/help_format.h"

#include <algorithm>
#include <sstream>

namespace pagejit::cli {
namespace {

constexpr int kNameColumns = 32;           // "  --bidirectional-ranges" and a type fit most often
constexpr int kNarrowestDescription = 30;  // narrower ones are harder to read than broken lines

int description_width(const Terminal& terminal) {
  if (terminal.width == 0) return 0;
  return std::max(terminal.width - kNameColumns, kNarrowestDescription);
}

}  // namespace

HelpFormatter::HelpFormatter(const Terminal& terminal) : width_(description_width(terminal)) {
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

}  // namespace pagejit::cli
