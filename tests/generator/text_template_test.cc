#include "generator/text_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagejit {
namespace {

using ::testing::HasSubstr;

TEST(TextTemplateTest, ReplacesEveryOccurrence) {
  const auto text = expand_template("f", "a {{x}} b {{y}} c {{x}}", {{"x", "1"}, {"y", "two"}});
  ASSERT_TRUE(text) << text.status().to_string();
  EXPECT_EQ(*text, "a 1 b two c 1");
}

TEST(TextTemplateTest, ValuesAreNotExpandedAgain) {
  const auto text = expand_template("f", "{{x}}", {{"x", "{{y}}"}});
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "{{y}}");
}

TEST(TextTemplateTest, BracesOfCodeAreLeftAlone) {
  const auto text = expand_template("f", "int a[2] = {{{x}}, 2}; }}", {});
  EXPECT_FALSE(text);  // "{{" always opens a name
  const auto code = expand_template("f", "struct S { int a; }; }}", {});
  ASSERT_TRUE(code);
  EXPECT_EQ(*code, "struct S { int a; }; }}");
}

struct BadTemplate {
  const char* name;
  const char* text;
  TemplateValues values;
  const char* sentence;
};

class BadTemplateTest : public ::testing::TestWithParam<BadTemplate> {};

TEST_P(BadTemplateTest, IsAnErrorThatNamesFileAndLine) {
  const auto text = expand_template("dir/file.tmpl", GetParam().text, GetParam().values);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.status().code(), StatusCode::kInternal);
  EXPECT_THAT(text.status().message(), HasSubstr(GetParam().sentence));
  EXPECT_THAT(text.status().message(), HasSubstr("dir/file.tmpl:"));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTemplateTest,
    ::testing::Values(
        BadTemplate{"Unknown", "one\n{{x}}", {}, "dir/file.tmpl:2: no value for \"x\""},
        BadTemplate{"Unused", "one", {{"x", "1"}}, "value \"x\" is not used"},
        BadTemplate{"Unclosed",
                    "one\ntwo {{x\n",
                    {{"x", "1"}},
                    "dir/file.tmpl:2: a name is opened and not closed"},
        BadTemplate{"ClosedOnAnotherLine", "{{x\n}}", {{"x", "1"}}, "opened and not closed"},
        BadTemplate{"OpenedTwice", "{{x {{y}}", {{"y", "1"}}, "opened and not closed"},
        BadTemplate{"GivenTwice", "{{x}}", {{"x", "1"}, {"x", "2"}}, "\"x\" is given twice"},
        BadTemplate{"Empty", "{{}}", {{"x", "1"}}, "no value for \"\""}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit
