#include "tools/models/config_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace pagejit::models {
namespace {

ConfigReader reader_of(const std::string& text) {
  Result<ConfigReader> reader = ConfigReader::parse(text);
  EXPECT_TRUE(reader.is_ok()) << reader.status().to_string();
  return *reader;
}

TEST(ConfigReaderTest, FirstOfSeveralKeysThatHasAValue) {
  const ConfigReader reader = reader_of(R"({"n_head": 7, "num_attention_heads": null})");
  EXPECT_EQ(reader.integer({"num_attention_heads", "n_head"}, {1, 10}), 7);
  EXPECT_EQ(reader.integer({"absent"}, {1, 10}), std::nullopt);
  EXPECT_TRUE(reader.status().is_ok());
}

TEST(ConfigReaderTest, ValueOutOfRangeNamesKeyValueAndRange) {
  const ConfigReader reader = reader_of(R"({"text_config": {"head_dim": -5}})");
  EXPECT_EQ(reader.section("text_config")->integer({"head_dim"}, {1, 10}), std::nullopt);
  EXPECT_EQ(reader.status().message(), "text_config.head_dim -5: must be an integer in [1, 10]");
}

TEST(ConfigReaderTest, IntegersThatAreNone) {
  for (const char* value : {"\"8\"", "8.5", "8.0", "true", "[8]", "{}", "18446744073709551615",
                            "99999999999999999999999", "-9223372036854775809", "1e400"}) {
    const auto parsed = ConfigReader::parse(std::string("{\"n\": ") + value + "}");
    if (!parsed) continue;  // 1e400 is no JSON number here
    EXPECT_EQ(parsed->integer({"n"}, {1, INT64_MAX}), std::nullopt) << value;
    EXPECT_FALSE(parsed->status().is_ok()) << value;
  }
}

TEST(ConfigReaderTest, KeepsTheFirstError) {
  const ConfigReader reader = reader_of(R"({"a": "x", "b": "y"})");
  EXPECT_EQ(reader.boolean("a"), std::nullopt);
  EXPECT_EQ(reader.boolean("b"), std::nullopt);
  EXPECT_EQ(reader.status().message(), "a \"x\": must be true or false");
}

TEST(ConfigReaderTest, ListWithOneWrongItemIsRefused) {
  const ConfigReader reader = reader_of(R"({"l": ["full_attention", 3]})");
  EXPECT_EQ(reader.text_list("l"), std::nullopt);
  EXPECT_FALSE(reader.status().is_ok());
}

TEST(ConfigReaderTest, LongValuesAreCutInTheSentence) {
  const ConfigReader reader = reader_of("{\"n\": \"" + std::string(5000, 'x') + "\"}");
  EXPECT_EQ(reader.integer({"n"}, {1, 2}), std::nullopt);
  EXPECT_LT(reader.status().message().size(), 200u);
}

TEST(ConfigReaderTest, RefusesWhatIsNoObject) {
  for (const char* text : {"", "null", "[]", "3", "\"x\"", "{", "{]", "{\"a\":}", "\xff\xfe",
                           "{} {}", "{\"a\": \"\xff\"}", "// c\n{}"}) {
    const auto reader = ConfigReader::parse(text);
    EXPECT_EQ(reader.status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(ConfigReaderTest, RefusesDeepNesting) {
  const std::string deep(1000000, '[');
  const auto reader = ConfigReader::parse("{\"a\": " + deep);
  EXPECT_EQ(reader.status().message(),
            "the file nests more than 64 levels deep: a config.json does not");
  // Brackets inside strings do not count.
  EXPECT_TRUE(ConfigReader::parse("{\"a\": \"\\\"" + std::string(1000, '[') + "\"}").is_ok());
}

TEST(ConfigReaderTest, RefusesAHugeFile) {
  const auto reader = ConfigReader::parse(std::string(kMaxConfigBytes + 1, ' '));
  EXPECT_EQ(reader.status().code(), StatusCode::kInvalidArgument);
}

TEST(PrintableTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[31m\xff"), "a\\x1b[31m\\xff");
  EXPECT_EQ(printable(std::string(70, 'a')), std::string(60, 'a') + "...");
}

}  // namespace
}  // namespace pagejit::models
