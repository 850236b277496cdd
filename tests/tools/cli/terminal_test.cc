#include "tools/cli/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "tools/cli/text_table.h"

namespace pagejit::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) {
    winsize size = {};
    size.ws_col = columns;
    size.ws_row = 24;
    is_open_ = openpty(&master_, &slave_, nullptr, nullptr, &size) == 0;
  }
  ~PseudoTerminal() {
    close(master_);
    close(slave_);
  }
  bool is_open() const { return is_open_; }
  int master() const { return master_; }
  int slave() const { return slave_; }

 private:
  bool is_open_ = false;
  int master_ = -1;
  int slave_ = -1;
};

TEST(TerminalTest, AFileHasNoWidthAndNoColour) {
  const int fd = open("/dev/null", O_WRONLY);
  const Terminal terminal = examine_terminal(fd, environment_of({{"COLUMNS", "40"}}));
  close(fd);
  EXPECT_FALSE(terminal.is_terminal);
  EXPECT_EQ(terminal.width, 0);
  EXPECT_FALSE(terminal.colour);
}

TEST(TerminalTest, WidthIsThatOfColumnsElseTheTerminals) {
  const PseudoTerminal pty(97);
  ASSERT_TRUE(pty.is_open());
  const auto width = [&](const Variables& variables) {
    return examine_terminal(pty.slave(), environment_of(variables)).width;
  };
  EXPECT_EQ(width({}), 97);
  EXPECT_EQ(width({{"COLUMNS", "60"}}), 60);
  for (const char* slip : {"", "0", "-5", "many", "60x", "99999999999"}) {
    EXPECT_EQ(width({{"COLUMNS", slip}}), 97) << slip;
  }
  const PseudoTerminal silent(0);
  EXPECT_EQ(examine_terminal(silent.slave(), environment_of({})).width, 80);
}

TEST(TerminalTest, ColourUnlessItIsDeclined) {
  const PseudoTerminal pty(80);
  const auto colour = [&](const Variables& variables) {
    return examine_terminal(pty.slave(), environment_of(variables)).colour;
  };
  EXPECT_TRUE(colour({{"TERM", "xterm"}}));
  EXPECT_TRUE(colour({{"TERM", "xterm"}, {"NO_COLOR", ""}}));
  EXPECT_FALSE(colour({{"TERM", "xterm"}, {"NO_COLOR", "1"}}));
  EXPECT_FALSE(colour({{"TERM", "dumb"}}));
  EXPECT_EQ(styled("x", Style::kBad, {.is_terminal = true, .colour = true}), "\x1b[1;31mx\x1b[0m");
  EXPECT_EQ(styled("x", Style::kBad, {.is_terminal = true}), "x");
}

TEST(TerminalTest, TextIsCutBetweenCharacters) {
  EXPECT_EQ(cut_to("head_size", 9), "head_size");
  EXPECT_EQ(cut_to("head_size", 5), "head…");
  EXPECT_EQ(cut_to("µµµµ", 3), "µµ…");
  EXPECT_EQ(wrapped("one two three four", 9), "one two\nthree\nfour");
  EXPECT_EQ(wrapped("unbreakable x", 3), "unbreakable\nx");
}

TEST(TextTableTest, TheWidestTextGivesWayOnATerminalOnly) {
  TextTable table({{"key"}, {"bytes", Align::kRight}, {"spec"}});
  table.add_row({"0123456789abcdef", "1,234,567", "decode q=bf16 kv=bf16 head_size=128"});
  const std::string wide = table.to_string();
  EXPECT_NE(wide.find("head_size=128\n"), std::string::npos);
  EXPECT_EQ(table.to_string({.is_terminal = true, .width = 200}), wide);
  EXPECT_EQ(table.to_string({.is_terminal = true, .width = 50}),
            "key                   bytes  spec\n"
            "----------------  ---------  ---------------------\n"
            "0123456789abcdef  1,234,567  decode q=bf16 kv=bf1…\n");
  // Nothing narrower than eight characters, and numbers never.
  EXPECT_EQ(table.to_string({.is_terminal = true, .width = 10}),
            "key           bytes  spec\n"
            "--------  ---------  --------\n"
            "0123456…  1,234,567  decode …\n");
}

// The command itself on a terminal. Its lines there end in "\r\n".
std::string run_on_terminal(unsigned short columns, const char* no_color,
                            std::vector<const char*> words) {
  const PseudoTerminal pty(columns);
  if (!pty.is_open()) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(pty.slave(), STDOUT_FILENO);
    dup2(pty.slave(), STDERR_FILENO);
    setenv("TERM", "xterm", 1);
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    if (no_color != nullptr) setenv("NO_COLOR", no_color, 1);
    words.insert(words.begin(), "pagejit");
    words.push_back(nullptr);
    execv(PAGEJIT_COMMAND, const_cast<char* const*>(words.data()));
    _exit(127);
  }
  waitpid(child, nullptr, 0);  // a few hundred bytes fit the terminal's own buffer
  std::string text(65536, '\0');
  fcntl(pty.master(), F_SETFL, O_NONBLOCK);
  const ssize_t count = read(pty.master(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

TEST(TerminalTest, TheCommandColoursAndWrapsOnATerminal) {
  const std::string wrong = run_on_terminal(80, nullptr, {"frobnicate"});
  EXPECT_TRUE(wrong.starts_with("\x1b[1;31mpagejit:\x1b[0m unknown subcommand")) << wrong;
  EXPECT_TRUE(run_on_terminal(80, "1", {"frobnicate"}).starts_with("pagejit: unknown")) << wrong;
  const std::string help = run_on_terminal(70, nullptr, {"cache", "stats", "--help"});
  EXPECT_NE(help.find("The directory (PAGEJIT_CACHE_DIR;\r\n"), std::string::npos) << help;
}

}  // namespace
}  // namespace pagejit::cli
