#include "tools/plot/xml_text.h"

#include <gtest/gtest.h>

namespace pagejit::plot {
namespace {

TEST(EscapeXmlTest, SpecialCharactersBecomeEntities) {
  EXPECT_EQ(escape_xml("a<b && c>d \"q\" 'r'"),
            "a&lt;b &amp;&amp; c&gt;d &quot;q&quot; &#39;r&#39;");
  EXPECT_EQ(escape_xml("</script><!--"), "&lt;/script&gt;&lt;!--");
  EXPECT_EQ(escape_xml("tab\there\nand Grüße µs €🙂"), "tab\there\nand Grüße µs €🙂");
}

TEST(EscapeXmlTest, WhatXmlCannotHoldIsReplaced) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(escape_xml(std::string_view("a\0b\x1b", 4)), "a" + r + "b" + r);
  EXPECT_EQ(escape_xml("\xff\x80"), r + r);
  EXPECT_EQ(escape_xml("\xc3"), r) << "cut in the middle";
  EXPECT_EQ(escape_xml("\xe2\x82"), r + r);
  EXPECT_EQ(escape_xml("\xc0\xaf"), r + r) << "longer than needed";
  EXPECT_EQ(escape_xml("\xed\xa0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(escape_xml("\xef\xbf\xbf"), r + r + r) << "U+FFFF";
  EXPECT_EQ(escape_xml("\xf4\x90\x80\x80"), r + r + r + r) << "beyond U+10FFFF";
}

}  // namespace
}  // namespace pagejit::plot
