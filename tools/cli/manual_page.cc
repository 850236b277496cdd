#include "tools/cli/manual_page.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace pagejit::cli {
namespace {

// Text that troff prints as it stands. A minus stays one to copy and paste.
std::string plain(std::string_view text) {
  std::string escaped;
  bool starts_line = true;
  for (const char c : text) {
    // At the start of a line these would be requests.
    if (starts_line && (c == '.' || c == '\'')) escaped += "\\&";
    starts_line = c == '\n';
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '~') {
      escaped += "\\(ti";  // not an accent
    } else if (c == '^') {
      escaped += "\\(ha";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// "\fB\-o\fR, \fB\-\-output\fR \fIFILE\fR ...", with a FILE for each that must follow
std::string heading(const CommandFlag& flag) {
  std::string text;
  for (const std::string& name : flag.names) {
    if (!text.empty()) text += ", ";
    text +=
        flag.is_positional ? "\\fI" + plain(upper(name)) + "\\fR" : "\\fB" + plain(name) + "\\fR";
  }
  if (!flag.is_positional && !flag.placeholder.empty()) {
    for (int i = 0; i < std::max(flag.num_values, 1); ++i) {
      text += " \\fI" + plain(flag.placeholder) + "\\fR";
    }
  }
  if (flag.repeats) text += " ...";
  return text;
}

void add_flags(const CommandTree& command, std::string* page) {
  for (const CommandFlag& flag : command.flags) {
    *page += ".TP\n" + heading(flag) + "\n" + plain(flag.help);
    if (flag.is_required) *page += " (required)";
    *page += "\n";
  }
}

void add_footer(const CommandTree& command, std::string* page) {
  if (command.footer.empty()) return;
  std::string_view footer = command.footer;
  while (footer.ends_with('\n')) footer.remove_suffix(1);
  *page += ".PP\n.nf\n" + plain(footer) + "\n.fi\n";
}

void add_command(const CommandTree& command, const std::string& parents, std::string* page) {
  const std::string name = parents + " " + command.name;
  *page += ".SS " + plain(name) + "\n" + plain(command.help) + ".\n";
  add_flags(command, page);
  add_footer(command, page);
  for (const CommandTree& below : command.commands) add_command(below, name, page);
}

}  // namespace

std::string manual_page(const CommandTree& command, const std::string& version) {
  std::string page = ".\\\" Made by `" + command.name + " generate man`.\n.TH " +
                     upper(command.name) + " 1 \"\" \"" + plain(version) + "\" \"User Commands\"\n";
  std::string help = command.help;
  if (help.ends_with('.')) help.pop_back();
  help.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(help.front())));
  page += ".SH NAME\n" + command.name + " \\- " + plain(help) + "\n";
  page += ".SH SYNOPSIS\n.B " + command.name + "\n\\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n";
  page += ".SH OPTIONS\n";
  add_flags(command, &page);
  page += ".SH COMMANDS\n";
  for (const CommandTree& below : command.commands) add_command(below, command.name, &page);
  page += ".SH EXAMPLES AND EXIT STATUS\n";
  add_footer(command, &page);
  page +=
      ".SH ENVIRONMENT\nThe variables\n.B PAGEJIT_*\nstand beside the options that win over them; "
      "\\fB" +
      command.name + " doctor\\fR lists those that are set.\n";
  return page;
}

}  // namespace pagejit::cli
