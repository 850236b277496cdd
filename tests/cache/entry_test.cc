#include "cache/entry.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/cache/cache_test_util.h"

namespace pagejit::cache {
namespace {

std::string encoded(const Entry& entry) { return encode_entry(entry).value(); }

void put_u64(std::string* bytes, size_t offset, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) (*bytes)[offset + i] = static_cast<char>(value >> (8 * i));
}

// As the grammar says, so that only the field under test is wrong.
void fix_checksum(std::string* bytes) {
  const std::string_view view = *bytes;
  const Digest digest = sha256({view.substr(0, 96), view.substr(128)});
  bytes->replace(96, 32, as_bytes(digest));
}

void expect_corrupt(const std::string& bytes, Corruption expected) {
  Corruption corruption{};
  const Result<Entry> entry = decode_entry(bytes, &corruption);
  ASSERT_FALSE(entry.is_ok());
  EXPECT_EQ(entry.status().code(), StatusCode::kDataCorrupt);
  EXPECT_EQ(corruption, expected) << entry.status().to_string();
  EXPECT_FALSE(entry.status().message().empty());
}

TEST(EntryTest, EncodesByteForByteAsTheGrammarSays) {
  Entry entry{{}, "me", "ima"};
  entry.key.source.fill(0x11);
  entry.key.compiler.fill(0x22);
  std::string expected = "PJKENTRY";
  expected += std::string("\x01\0\0\0\0\0\0\0", 8);
  expected += std::string("\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16);
  expected += std::string(32, '\x11') + std::string(32, '\x22');
  expected += as_bytes(sha256({expected, "meima"}));
  expected += "meima";
  EXPECT_EQ(encoded(entry), expected);
}

TEST(EntryTest, DecodesWhatItEncoded) {
  for (const Entry& entry :
       {example_entry(1), example_entry(2, 0), Entry{example_entry(3).key, "", ""},
        Entry{example_entry(4).key, std::string(3, '\0'), "x"}}) {
    const Result<Entry> decoded = decode_entry(encoded(entry), entry.key);
    ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
    EXPECT_EQ(*decoded, entry);
  }
}

TEST(EntryTest, TruncationAtEveryByteIsFound) {
  const std::string bytes = encoded(example_entry(1));
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    expect_corrupt(bytes.substr(0, size), Corruption::kTruncated);
  }
}

TEST(EntryTest, EveryFlippedBitIsFound) {
  const Entry entry = example_entry(1);
  const std::string bytes = encoded(entry);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const Result<Entry> decoded = decode_entry(damaged);
      ASSERT_FALSE(decoded.is_ok()) << "byte " << i << " bit " << bit;
      ASSERT_EQ(decoded.status().code(), StatusCode::kDataCorrupt);
    }
  }
}

TEST(EntryTest, AppendedBytesAreFound) {
  const std::string bytes = encoded(example_entry(1));
  expect_corrupt(bytes + '\0', Corruption::kTrailingBytes);
  expect_corrupt(bytes + bytes, Corruption::kTrailingBytes);
}

TEST(EntryTest, MagicVersionAndFlagsAreCheckedBeforeTheRest) {
  std::string bytes = encoded(example_entry(1));
  bytes[0] = 'Q';
  fix_checksum(&bytes);
  expect_corrupt(bytes, Corruption::kMagic);

  bytes = encoded(example_entry(1));
  bytes[8] = 2;
  fix_checksum(&bytes);
  expect_corrupt(bytes, Corruption::kVersion);

  bytes = encoded(example_entry(1));
  bytes[15] = 1;
  fix_checksum(&bytes);
  expect_corrupt(bytes, Corruption::kVersion);
}

TEST(EntryTest, LengthsAtIntegerLimitsAreFound) {
  const std::string bytes = encoded(example_entry(1));
  const uint64_t payload = bytes.size() - kEntryHeaderBytes;
  const uint64_t limits[] = {0,
                             1,
                             payload,
                             payload + 1,
                             kMaxEntryBytes - kEntryHeaderBytes,
                             kMaxEntryBytes,
                             INT32_MAX,
                             UINT32_MAX,
                             uint64_t{UINT32_MAX} + 1,
                             INT64_MAX,
                             uint64_t{INT64_MAX} + 1,
                             UINT64_MAX - kEntryHeaderBytes,
                             UINT64_MAX - payload,
                             UINT64_MAX};
  for (uint64_t metadata : limits) {
    for (uint64_t image : limits) {
      // These cut the same bytes elsewhere; with a valid checksum that is another, valid entry.
      if (metadata <= payload && image == payload - metadata) continue;
      std::string damaged = bytes;
      put_u64(&damaged, 16, metadata);
      put_u64(&damaged, 24, image);
      fix_checksum(&damaged);
      const Result<Entry> decoded = decode_entry(damaged);
      ASSERT_FALSE(decoded.is_ok()) << metadata << " " << image;
      ASSERT_EQ(decoded.status().code(), StatusCode::kDataCorrupt);
    }
  }
  // Each is possible, their sum is not.
  std::string damaged = bytes;
  put_u64(&damaged, 16, kMaxEntryBytes / 2);
  put_u64(&damaged, 24, kMaxEntryBytes / 2);
  fix_checksum(&damaged);
  expect_corrupt(damaged, Corruption::kLength);
  // The sum wraps around to the true size.
  damaged = bytes;
  put_u64(&damaged, 16, UINT64_MAX - 9);
  put_u64(&damaged, 24, payload + 10);
  fix_checksum(&damaged);
  expect_corrupt(damaged, Corruption::kLength);
}

TEST(EntryTest, MovingTheBorderBetweenMetadataAndImageIsFound) {
  std::string bytes = encoded(example_entry(1));
  const uint64_t metadata = example_entry(1).metadata.size();
  put_u64(&bytes, 16, metadata + 1);
  put_u64(&bytes, 24, example_entry(1).image.size() - 1);
  expect_corrupt(bytes, Corruption::kChecksum);
}

TEST(EntryTest, AValidEntryOfAnotherKeyIsFound) {
  Corruption corruption{};
  const Result<Entry> decoded =
      decode_entry(encoded(example_entry(1)), example_entry(2).key, &corruption);
  ASSERT_FALSE(decoded.is_ok());
  EXPECT_EQ(decoded.status().code(), StatusCode::kDataCorrupt);
  EXPECT_EQ(corruption, Corruption::kWrongKey);

  Key same_source = example_entry(1).key;
  same_source.compiler[31] ^= 1;  // not in the file name, but in the entry
  EXPECT_FALSE(decode_entry(encoded(example_entry(1)), same_source, &corruption).is_ok());
  EXPECT_EQ(corruption, Corruption::kWrongKey);
}

TEST(EntryTest, RandomBytesNeverDecode) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = i % 2 == 0 ? "" : encoded(example_entry(1, random() % 64));
    if (bytes.empty()) {
      bytes.resize(random() % 400);
      for (char& c : bytes) c = static_cast<char>(random());
    } else {  // a few bytes of a valid one
      const std::string before = bytes;
      for (unsigned n = 0; n <= random() % 8; ++n) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      if (bytes == before) continue;
    }
    EXPECT_FALSE(decode_entry(bytes).is_ok());
  }
}

TEST(EntryTest, AnOversizedEntryIsNotEncoded) {
  Entry entry = example_entry(1, 0);
  entry.metadata.clear();
  entry.image.resize(kMaxEntryBytes - kEntryHeaderBytes + 1);
  const Result<std::string> bytes = encode_entry(entry);
  ASSERT_FALSE(bytes.is_ok());
  EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidArgument);
}

TEST(EntryTest, EveryCorruptionHasAName) {
  for (size_t i = 0; i < kNumCorruptions; ++i) {
    EXPECT_NE(corruption_name(static_cast<Corruption>(i)), "unknown corruption");
  }
  EXPECT_EQ(corruption_name(static_cast<Corruption>(kNumCorruptions)), "unknown corruption");
}

}  // namespace
}  // namespace pagejit::cache
