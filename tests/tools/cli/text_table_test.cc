#include "tools/cli/text_table.h"

#include <gtest/gtest.h>

namespace pagejit::cli {
namespace {

TEST(TextTableTest, AlignsColumns) {
  TextTable table({{"name"}, {"ms", Align::kRight}, {"note"}});
  table.add_row({"a", "1.5", "first"});
  table.add_row({"longer", "1234", "second"});
  EXPECT_EQ(table.to_string(),
            "name      ms  note\n"
            "------  ----  ------\n"
            "a        1.5  first\n"
            "longer  1234  second\n");
}

TEST(TextTableTest, ShortRowsHaveEmptyCellsAndNoTrailingBlanks) {
  TextTable table({{"name"}, {"ms", Align::kRight}});
  table.add_row({"a"});
  table.add_row({"b", "2", "dropped"});
  EXPECT_EQ(table.to_string(), "name  ms\n----  --\na\nb      2\n");
}

TEST(TextTableTest, CountsCharactersAndNotBytes) {
  TextTable table({{"µs"}, {"x"}});
  table.add_row({"10", "y"});
  EXPECT_EQ(table.to_string(), "µs  x\n--  -\n10  y\n");
}

TEST(FormatTest, Numbers) {
  EXPECT_EQ(format_ms(0.25), "0.2");
  EXPECT_EQ(format_ms(153.21), "153.2");
  EXPECT_EQ(format_ms(1530.7), "1531");
  EXPECT_EQ(format_error(0.00123), "1.2e-03");
  EXPECT_EQ(format_error(0), "0");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(-123), "-123");
}

}  // namespace
}  // namespace pagejit::cli
