// Bundles in memory that are truncated, changed, or claim what is not so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/bundle.h"
#include "tests/cache/bundle_test_util.h"

namespace pagejit::cache {
namespace {

using testing::HasSubstr;

TEST(BundleDamageTest, TruncationAtEveryByteIsFoundOnOpening) {
  const std::string bytes = bundle_of(example_entries(3));
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    expect_refused(bytes.substr(0, size), "truncated");
  }
  const std::string with_signature = signed_by(bytes, FakeSigner(1));
  for (size_t size = bytes.size() + 1; size < with_signature.size(); ++size) {
    SCOPED_TRACE(size);
    expect_refused(with_signature.substr(0, size), "bytes after its end");
  }
}

TEST(BundleDamageTest, AppendedBytesAreFound) {
  const std::string bytes = bundle_of(example_entries(3));
  expect_refused(bytes + '\0', "has 1 bytes after its end");
  expect_refused(bytes + bytes, "bytes after its end");
  expect_refused(bytes + std::string(104, 'x'), "are no signature");
  expect_refused(signed_by(bytes, FakeSigner(1)) + '\0', "has 105 bytes after its end");
  const std::string twice = signed_by(signed_by(bytes, FakeSigner(1)), FakeSigner(2));
  expect_refused(twice, "has 208 bytes after its end");
}

// A flipped bit is found on opening, or by the look-up of the one entry it is in; only where it
// lies in the closing digest verify() alone sees it.
TEST(BundleDamageTest, NoFlippedBitYieldsWrongBytes) {
  const std::vector<Entry> entries = example_entries(3, 20);
  const std::string bytes = bundle_of(entries);
  const size_t entries_begin = 64 + 3 * 112;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(std::to_string(i) + " bit " + std::to_string(bit));
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto bundle = Bundle::open_memory(damaged);
      if (i < entries_begin) {
        ASSERT_FALSE(bundle);
        ASSERT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
        continue;
      }
      ASSERT_TRUE(bundle) << bundle.status().to_string();
      int num_corrupt = 0;
      for (const Entry& entry : entries) {
        const LookupResult found = (*bundle)->lookup(entry.key);
        if (found.outcome == LookupOutcome::kHit) {
          ASSERT_EQ(*found.entry, entry);
        } else {
          ASSERT_EQ(found.outcome, LookupOutcome::kCorrupt);
          ASSERT_EQ(found.status.code(), StatusCode::kDataCorrupt);
          ++num_corrupt;
        }
      }
      ASSERT_EQ(num_corrupt, i < bytes.size() - 32 ? 1 : 0);
      const Status verified = (*bundle)->verify();
      ASSERT_EQ(verified.code(), StatusCode::kDataCorrupt);
      ASSERT_THAT(verified.message(),
                  HasSubstr(num_corrupt == 1 ? "1 of 3 entries fail" : "closing digest"));
    }
  }
}

TEST(BundleDamageTest, SwappedEntriesAreCorrupt) {
  const std::vector<Entry> entries = example_entries(2);  // of one size
  std::string bytes = bundle_of(entries);
  const size_t size = encode_entry(entries[0]).value().size();
  const size_t begin = 64 + 2 * 112;
  const std::string first = bytes.substr(begin, size);
  bytes.replace(begin, size, bytes.substr(begin + size, size));
  bytes.replace(begin + size, size, first);
  fix_digests(&bytes, 2);
  const auto bundle = open_bundle(bytes);
  for (const Entry& entry : entries) {
    const LookupResult found = bundle->lookup(entry.key);
    EXPECT_EQ(found.outcome, LookupOutcome::kCorrupt);
    EXPECT_EQ(found.corruption, Corruption::kWrongKey);
  }
  EXPECT_EQ(bundle->verify().code(), StatusCode::kDataCorrupt);
}

// A valid entry under the right key, but not the one that the (perhaps signed) index names.
TEST(BundleDamageTest, AReplacedEntryIsCorrupt) {
  Entry entry = example_entry(1);
  std::string bytes = bundle_of({entry});
  entry.image[0] ^= 1;
  const std::string other = encode_entry(entry).value();
  bytes.replace(64 + 112, other.size(), other);
  const Digest closing = sha256({std::string_view(bytes).substr(0, bytes.size() - 32)});
  bytes.replace(bytes.size() - 32, 32, as_bytes(closing));
  const auto bundle = open_bundle(bytes);
  const LookupResult found = bundle->lookup(entry.key);
  EXPECT_EQ(found.outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(found.corruption, Corruption::kChecksum);
  EXPECT_THAT(found.status.message(), HasSubstr("not the entry that the index names"));
}

TEST(BundleDamageTest, MagicVersionAndFlagsAreCheckedBeforeTheRest) {
  const std::string bytes = bundle_of(example_entries(1));
  std::string damaged = bytes;
  damaged[0] = 'Q';
  fix_digests(&damaged, 1);
  expect_refused(damaged, "does not begin with \"PJKBUNDL\"");
  damaged = bytes;
  put(&damaged, 8, 2, 4);
  fix_digests(&damaged, 1);
  expect_refused(damaged, "has format version 2, must be 1");
  damaged = bytes;
  put(&damaged, 12, 1, 4);
  fix_digests(&damaged, 1);
  expect_refused(damaged, "has flags 1");
}

TEST(BundleDamageTest, NumbersAtIntegerLimitsAreFound) {
  const std::vector<Entry> entries = example_entries(3);
  const std::string bytes = bundle_of(entries);
  const std::vector<uint64_t> limits = {0,
                                        1,
                                        2,
                                        3,
                                        4,
                                        127,
                                        128,
                                        bytes.size() - 32,
                                        bytes.size() - 1,
                                        bytes.size(),
                                        bytes.size() + 1,
                                        kMaxBundleEntries,
                                        kMaxBundleEntries + 1,
                                        kMaxEntryBytes,
                                        kMaxEntryBytes + 1,
                                        INT32_MAX,
                                        UINT32_MAX,
                                        uint64_t{UINT32_MAX} + 1,
                                        INT64_MAX,
                                        uint64_t{INT64_MAX} + 1,
                                        UINT64_MAX - 103,
                                        UINT64_MAX / 112 + 1,
                                        UINT64_MAX / 240 + 1,
                                        UINT64_MAX - 31,
                                        UINT64_MAX};
  // The number of entries, the size, and offset and size of the middle item: alone and in pairs.
  const size_t fields[] = {16, 24, 64 + 112 + 64, 64 + 112 + 72};
  for (size_t a : fields) {
    for (size_t b : fields) {
      for (uint64_t x : limits) {
        for (uint64_t y : limits) {
          std::string damaged = bytes;
          put(&damaged, a, x);
          put(&damaged, b, y);
          if (damaged == bytes) continue;
          fix_digests(&damaged, 3);
          const auto bundle = Bundle::open_memory(damaged);
          ASSERT_FALSE(bundle) << a << "=" << x << " " << b << "=" << y;
          ASSERT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
        }
      }
    }
  }
}

TEST(BundleDamageTest, ACountWhoseBytesWrapAroundIsFoundBeforeTheIndexIsRead) {
  for (uint64_t bytes_each : {112, 240}) {
    std::string bytes = bundle_of(example_entries(3));
    put(&bytes, 16, UINT64_MAX / bytes_each + 1);
    expect_refused(bytes, "claims " + std::to_string(UINT64_MAX / bytes_each + 1) + " entries");
  }
}

TEST(BundleDamageTest, AnotherCountWithARightDigestIsFound) {
  const std::string bytes = bundle_of(example_entries(3));
  for (uint64_t count : {0, 1, 2, 4}) {
    std::string damaged = bytes;
    put(&damaged, 16, count);
    fix_digests(&damaged, count);
    const auto bundle = Bundle::open_memory(damaged);
    ASSERT_FALSE(bundle) << count;
    EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
  }
}

TEST(BundleDamageTest, AnIndexOutOfOrderOrWithTwoOfAKindIsFound) {
  const std::vector<Entry> entries = example_entries(3);
  const std::string bytes = bundle_of(entries);
  std::string damaged = bytes;
  const std::string first = bytes.substr(64, 64);
  damaged.replace(64, 64, bytes.substr(64 + 112, 64));
  damaged.replace(64 + 112, 64, first);
  fix_digests(&damaged, 3);
  expect_refused(damaged, "item 1 of its index is not greater than the one before it");
  damaged = bytes;
  damaged.replace(64 + 112, 64, first);
  fix_digests(&damaged, 3);
  expect_refused(damaged, "item 1 of its index is not greater than the one before it");
}

TEST(BundleDamageTest, GapsAndOverlapsAreFound) {
  const std::string bytes = bundle_of(example_entries(2));
  for (int shift : {-1, 1}) {
    std::string damaged = bytes;
    const size_t field = 64 + 112 + 64;
    put(&damaged, field, load_little_endian(bytes, field, 8) + static_cast<uint64_t>(shift));
    fix_digests(&damaged, 2);
    expect_refused(damaged, "item 1 of its index has offset");
    // The sizes differ, their sum does not.
    damaged = bytes;
    const size_t size = load_little_endian(bytes, 64 + 72, 8);
    put(&damaged, 64 + 72, size + static_cast<uint64_t>(shift));
    fix_digests(&damaged, 2);
    expect_refused(damaged, "item 1 of its index has offset");
  }
}

TEST(BundleDamageTest, AnItemSmallerThanAnyEntryIsFound) {
  std::string bytes = bundle_of(example_entries(2));
  const uint64_t begin = 64 + 2 * 112;
  const uint64_t size = load_little_endian(bytes, 64 + 72, 8);
  put(&bytes, 64 + 72, 127);
  put(&bytes, 64 + 112 + 64, begin + 127);
  put(&bytes, 64 + 112 + 72, 2 * size - 127);
  fix_digests(&bytes, 2);
  expect_refused(bytes, "item 0 of its index has size 127, must be in [128, 268435456]");
}

}  // namespace
}  // namespace pagejit::cache
