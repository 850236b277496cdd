#include "runtime/tuned_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagejit {
namespace {

using ::testing::HasSubstr;

TunedRecord sample() {
  return {.spec = "decode q=bf16",
          .target = "sm_90a",
          .device = "NVIDIA H200",
          .tile = "token_groups=4",
          .planned_tile = "token_groups=8",
          .image = "0123.4567",
          .version = "1.2",
          .problems = {{.name = "batch=1 seq_len=1024", .planned_ns = 4000, .tuned_ns = 1000},
                       {.name = "", .planned_ns = 0, .tuned_ns = 7}}};
}

TEST(TunedRecordTest, IsReadAsItWasWritten) {
  const cache::Entry entry = encode_tuned_record(sample());
  EXPECT_TRUE(entry.image.empty());
  EXPECT_TRUE(is_tuned_record(entry.metadata));
  const Result<TunedRecord> read = parse_tuned_record(entry);
  ASSERT_TRUE(read) << read.status().to_string();
  EXPECT_EQ(*read, sample());
  EXPECT_EQ(encode_tuned_record(*read), entry);
}

TEST(TunedRecordTest, EveryTruncationAndEveryAppendedByteIsRefused) {
  const std::string text = encode_tuned_record(sample()).metadata;
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<TunedRecord> read = parse_tuned_record(text.substr(0, size));
    EXPECT_EQ(read.status().code(), StatusCode::kDataCorrupt) << size;
  }
  EXPECT_FALSE(parse_tuned_record(text + "\n"));
}

TEST(TunedRecordTest, WhatIsAcceptedIsWrittenBackAlike) {
  const std::string text = encode_tuned_record(sample()).metadata;
  size_t accepted = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'\0', '\n', '\r', ' ', '0', '9', '=', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      const Result<TunedRecord> read = parse_tuned_record(changed);
      if (!read) continue;
      ++accepted;
      EXPECT_EQ(encode_tuned_record(*read).metadata, changed) << i;
    }
  }
  EXPECT_GT(accepted, 0u);
}

TEST(TunedRecordTest, NumbersAreBounded) {
  std::string text = encode_tuned_record(sample()).metadata;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parse_tuned_record(changed);
  };
  EXPECT_FALSE(with("problems=2", "problems=18446744073709551615"));
  EXPECT_FALSE(with("problems=2", "problems=02"));
  EXPECT_FALSE(with("problem=4000", "problem=99999999999999999999"));
  EXPECT_FALSE(with("problem=4000", "problem=-1"));
  EXPECT_TRUE(with("problem=4000", "problem=4001"));
}

TEST(TunedRecordTest, DevicesOfOneSpecLieSideBySide) {
  const cache::Key key = tuned_record_key("spec", "sm_90a", "NVIDIA H200");
  const cache::Key other_device = tuned_record_key("spec", "sm_90a", "NVIDIA H100");
  EXPECT_EQ(key.source, other_device.source);
  EXPECT_NE(key.compiler, other_device.compiler);
  EXPECT_NE(key.source, tuned_record_key("spec", "sm_90", "NVIDIA H200").source);
  EXPECT_NE(key.source, tuned_record_key("specs", "m_90a", "NVIDIA H200").source);
}

TEST(TunedRecordTest, ARecordUnderTheKeyOfAnotherIsCorrupt) {
  cache::Entry entry = encode_tuned_record(sample());
  TunedRecord other = sample();
  other.device = "NVIDIA H100";
  entry.metadata = encode_tuned_record(other).metadata;
  const Result<TunedRecord> read = parse_tuned_record(entry);
  EXPECT_EQ(read.status().code(), StatusCode::kDataCorrupt);
  EXPECT_THAT(read.status().message(), HasSubstr("key of another"));
  entry = encode_tuned_record(sample());
  entry.image = "x";
  EXPECT_FALSE(parse_tuned_record(entry));
}

TEST(TunedRecordTest, LineBreaksCannotMakeLines) {
  TunedRecord record = sample();
  record.device = "a\ntile=b";
  const Result<TunedRecord> read = parse_tuned_record(encode_tuned_record(record));
  ASSERT_TRUE(read) << read.status().to_string();
  EXPECT_EQ(read->device, "a tile=b");
}

TEST(TunedRecordTest, TheSpeedupIsTheGeometricMeanOfWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(sample().speedup(), 4);
  TunedRecord record = sample();
  record.problems.push_back({.name = "b", .planned_ns = 100, .tuned_ns = 100});
  EXPECT_DOUBLE_EQ(record.speedup(), 2);
  EXPECT_DOUBLE_EQ(TunedRecord().speedup(), 1);
}

}  // namespace
}  // namespace pagejit
