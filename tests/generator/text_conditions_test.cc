#include "generator/text_conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace pagejit {
namespace {

using ::testing::HasSubstr;

const TextSwitches kSwitches = {{"ON", true}, {"OFF", false}, {"ALSO_ON", true}};

// The lines that are kept, each followed by a blank; or the error.
std::string kept(const std::string& text) {
  TextConditions conditions(kSwitches);
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const auto kind = conditions.next(line);
    if (!kind) return kind.status().message();
    if (*kind == TextConditions::Line::kKept) out += line + " ";
  }
  const Status status = conditions.finish();
  return status ? out : status.message();
}

TEST(TextConditionsTest, KeepsWhatIsOn) {
  EXPECT_EQ(kept("a\n#if ON\nb\n#endif\nc\n#if OFF\nd\n#endif\ne\n"), "a b c e ");
  EXPECT_EQ(kept("#if !ON\na\n#endif\n#if !OFF\nb\n#endif\n"), "b ");
}

TEST(TextConditionsTest, TakesTheFirstBranchThatHolds) {
  const auto chain = [](const std::string& a, const std::string& b) {
    return kept("#if " + a + "\n1\n#elif " + b + "\n2\n#else\n3\n#endif\n");
  };
  EXPECT_EQ(chain("ON", "ON"), "1 ");
  EXPECT_EQ(chain("ON", "OFF"), "1 ");
  EXPECT_EQ(chain("OFF", "ON"), "2 ");
  EXPECT_EQ(chain("OFF", "OFF"), "3 ");
}

TEST(TextConditionsTest, JoinsSwitches) {
  const auto holds = [](const std::string& condition) {
    return kept("#if " + condition + "\nyes\n#endif\n") == "yes ";
  };
  EXPECT_TRUE(holds("ON || OFF"));
  EXPECT_TRUE(holds("OFF || OFF || ON"));
  EXPECT_FALSE(holds("OFF || !ON"));
  EXPECT_TRUE(holds("ON && ALSO_ON"));
  EXPECT_FALSE(holds("ON && OFF && ALSO_ON"));
  EXPECT_TRUE(holds("ON && !OFF"));
}

TEST(TextConditionsTest, Nests) {
  const std::string text =
      "#if OFF\na\n#if ON\nb\n#else\nc\n#endif\nd\n#else\n#if ON\ne\n#endif\n#if OFF\nf\n#endif\n"
      "g\n#endif\nh\n";
  EXPECT_EQ(kept(text), "e g h ");
}

TEST(TextConditionsTest, LeavesOtherDirectivesAlone) {
  EXPECT_EQ(kept("#pragma unroll\n  #if indented\n"), "#pragma unroll   #if indented ");
}

TEST(TextConditionsTest, SaysWhatIsWrong) {
  EXPECT_THAT(kept("#if SURPRISE\n#endif\n"), HasSubstr("no switch \"SURPRISE\""));
  EXPECT_THAT(kept("#if OFF\n#if SURPRISE\n#endif\n#endif\n"), HasSubstr("no switch"));
  EXPECT_THAT(kept("#if ON || OFF && ON\n#endif\n"), HasSubstr("either || or &&, not both"));
  EXPECT_THAT(kept("#if\n#endif\n"), HasSubstr("no switch \"\""));
  EXPECT_THAT(kept("#if ON\n"), HasSubstr("1 #if without #endif"));
  EXPECT_THAT(kept("#endif\n"), HasSubstr("#endif without #if"));
  EXPECT_THAT(kept("#else\n"), HasSubstr("#else without #if"));
  EXPECT_THAT(kept("#if ON\n#else\n#else\n#endif\n"), HasSubstr("#else without #if"));
  EXPECT_THAT(kept("#ifdef ON\n#endif\n"), HasSubstr("#ifdef ON: conditions are"));
}

}  // namespace
}  // namespace pagejit
