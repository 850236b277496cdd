#include "tools/cli/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "tests/tools/cli/pseudo_terminal.h"
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

TEST(TerminalTest, LinesAreFittedToATerminalOnly) {
  const Terminal narrow = {.is_terminal = true, .width = 20};
  EXPECT_EQ(fitted("one two three four five six\n", {}), "one two three four five six\n");
  EXPECT_EQ(fitted("one two three four five six\nshort\n", narrow),
            "one two three four\nfive six\nshort\n");
  EXPECT_EQ(fitted("  one two three four five", narrow), "  one two three four\n  five");
  EXPECT_EQ(fitted("ok       one two three four", narrow), "ok       one two\n         three four")
      << "below the text";
  EXPECT_EQ(fitted("* one two three four five", narrow, 4), "* one two three four\n    five");
  EXPECT_EQ(fitted("a /path/that/is/longer/than/it b", narrow),
            "a\n/path/that/is/longer/than/it\nb")
      << "a word stays whole";
  EXPECT_EQ(fitted("\n\na\n", narrow), "\n\na\n");
}

TEST(TextTableTest, ColumnsWithoutRoomFollowBelow) {
  TextTable table({{"GPU"}, {"threads", Align::kRight}, {"registers", Align::kRight}, {"limit"}});
  table.add_row({"H200 SXM", "1,024", "65,536", "shared memory"}, Style::kPlain);
  const std::string whole = table.to_string();
  EXPECT_EQ(table.to_string({.is_terminal = true, .width = 80}), whole);
  TextTable wide({{"GPU"},
                  {"of threads", Align::kRight},
                  {"of registers", Align::kRight},
                  {"of barriers", Align::kRight},
                  {"limit"}});
  wide.add_row({"H200 SXM 141 GB", "1,024", "65,536", "16", "shared memory"});
  EXPECT_EQ(wide.to_string({.is_terminal = true, .width = 44}),
            "GPU              of threads  of registers\n"
            "---------------  ----------  ------------\n"
            "H200 SXM 141 GB       1,024        65,536\n"
            "\n"
            "GPU              of barriers  limit\n"
            "---------------  -----------  -------------\n"
            "H200 SXM 141 GB           16  shared memory\n");
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

TEST(TerminalTest, TheCommandColoursAndWrapsOnATerminal) {
  const std::string wrong = run_on_terminal(80, {"frobnicate"});
  EXPECT_TRUE(wrong.starts_with("\x1b[1;31mpagejit:\x1b[0m unknown subcommand")) << wrong;
  EXPECT_TRUE(
      run_on_terminal(80, {"frobnicate"}, {{"NO_COLOR", "1"}}).starts_with("pagejit: unknown"))
      << wrong;
  const std::string help = run_on_terminal(70, {"cache", "stats", "--help"});
  EXPECT_NE(help.find("The directory (PAGEJIT_CACHE_DIR;\r\n"), std::string::npos) << help;
}

}  // namespace
}  // namespace pagejit::cli
