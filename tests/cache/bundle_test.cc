// Bundles in memory: the grammar, and what is not one.
#include "cache/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cache/bundle_test_util.h"

namespace pagejit::cache {
namespace {

using testing::HasSubstr;

void expect_refused(const std::string& bytes, const std::string& sentence,
                    const BundleOptions& options = {}) {
  const auto bundle = Bundle::open_memory(bytes, options);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
  EXPECT_THAT(bundle.status().message(), HasSubstr(sentence));
}

// The entries are found and nothing else is.
void expect_serves(Bundle& bundle, const std::vector<Entry>& entries) {
  EXPECT_EQ(bundle.num_entries(), entries.size());
  for (const Entry& entry : entries) {
    const LookupResult found = bundle.lookup(entry.key);
    ASSERT_EQ(found.outcome, LookupOutcome::kHit) << found.status.to_string();
    EXPECT_EQ(*found.entry, entry);
    Key other = entry.key;
    other.compiler[31] ^= 1;
    EXPECT_EQ(bundle.lookup(other).outcome, LookupOutcome::kMiss);
    other = entry.key;
    other.source[31] ^= 1;
    EXPECT_EQ(bundle.lookup(other).outcome, LookupOutcome::kMiss);
  }
}

TEST(BundleTest, EncodesByteForByteAsTheGrammarSays) {
  Entry first{{}, "me", "ima"};
  first.key.source.fill(0x11);
  first.key.compiler.fill(0x33);
  Entry second{{}, "", "x"};
  second.key.source.fill(0x11);
  second.key.compiler.fill(0xf0);  // greater as a byte, less as a char
  const std::string a = encode_entry(first).value();
  const std::string b = encode_entry(second).value();
  ASSERT_EQ(a.size(), 133u);
  ASSERT_EQ(b.size(), 129u);

  std::string header = "PJKBUNDL";
  header += std::string("\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", 16);
  header += std::string("\x46\x02\0\0\0\0\0\0", 8);  // 64 + 224 + 133 + 129 + 32 = 582
  std::string index = std::string(32, '\x11') + std::string(32, '\x33');
  index += std::string("\x20\x01\0\0\0\0\0\0\x85\0\0\0\0\0\0\0", 16);  // 288, 133
  index += a.substr(96, 32);
  index += std::string(32, '\x11') + std::string(32, '\xf0');
  index += std::string("\xa5\x01\0\0\0\0\0\0\x81\0\0\0\0\0\0\0", 16);  // 421, 129
  index += b.substr(96, 32);
  std::string expected = header + std::string(as_bytes(sha256({header, index}))) + index + a + b;
  expected += as_bytes(sha256({expected}));
  EXPECT_EQ(bundle_of({second, first}), expected);
}

TEST(BundleTest, FindsWhatWasWrittenAndNothingElse) {
  for (int count : {1, 2, 3, 50}) {
    const std::vector<Entry> entries = example_entries(count);
    const std::string bytes = bundle_of(entries);
    const auto bundle = open_bundle(bytes);
    expect_serves(*bundle, entries);
    EXPECT_EQ(bundle->lookup(example_entry(1000).key).outcome, LookupOutcome::kMiss);
    EXPECT_TRUE(bundle->verify());
    EXPECT_EQ(bundle->size(), bytes.size());
    EXPECT_EQ(bundle->signature().verdict, SignatureVerdict::kUnsigned);
  }
}

TEST(BundleTest, TheIndexIsListedWithoutReadingEntries) {
  const std::vector<Entry> entries = example_entries(5);
  std::string bytes = bundle_of(entries);
  std::fill(bytes.begin() + 64 + 5 * 112, bytes.end(), '\0');
  const auto bundle = open_bundle(bytes);
  uint64_t offset = 64 + 5 * 112;
  for (size_t i = 0; i < 5; ++i) {
    const BundleItem item = bundle->item(i);
    EXPECT_EQ(item.offset, offset);
    EXPECT_EQ(item.size, encode_entry(entries[0]).value().size());
    EXPECT_EQ(std::count_if(entries.begin(), entries.end(),
                            [&](const Entry& e) { return e.key == item.key; }),
              1);
    offset += item.size;
  }
  EXPECT_FALSE(bundle->verify());
}

TEST(BundleTest, AnEmptyBundleIsLegal) {
  const std::string bytes = bundle_of({});
  EXPECT_EQ(bytes.size(), 96u);
  const auto bundle = open_bundle(bytes);
  EXPECT_EQ(bundle->num_entries(), 0u);
  EXPECT_EQ(bundle->lookup(example_entry(1).key).outcome, LookupOutcome::kMiss);
  EXPECT_TRUE(bundle->verify());
}

TEST(BundleTest, OfSeveralCompilersTheBetterEntryIsTaken) {
  std::vector<Entry> entries = example_entries(3);
  Entry same = entries[1];
  for (uint8_t compiler : {9, 5, 7}) {
    same.key.compiler.fill(compiler);
    same.metadata = compiler == 9 ? "old" : "new";
    entries.push_back(same);
  }
  const std::string bytes = bundle_of(entries);
  const auto bundle = open_bundle(bytes);
  const Digest source = same.key.source;
  const auto newer = [](const Entry& a, const Entry& b) {
    return a.metadata == "new" && b.metadata != "new";
  };
  LookupResult found = bundle->lookup_any_compiler(source, newer);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit);
  EXPECT_EQ(found.entry->key.compiler[0], 5);  // of the equally good the smallest C
  const auto greatest = [](const Entry& a, const Entry& b) {
    return a.key.compiler[0] > b.key.compiler[0];
  };
  found = bundle->lookup_any_compiler(source, greatest);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit);
  EXPECT_EQ(found.entry->key.compiler, std::max(entries[1].key, entries[3].key).compiler);
  EXPECT_EQ(bundle->lookup_any_compiler(example_entry(99).key.source, newer).outcome,
            LookupOutcome::kMiss);
}

TEST(BundleTest, ADamagedCandidateIsPassedOver) {
  std::vector<Entry> entries(2, example_entry(1));
  entries[0].key.compiler.fill(1);
  entries[1].key.compiler.fill(2);
  std::string bytes = bundle_of(entries);
  const size_t first_image = 64 + 2 * 112 + 140;
  bytes[first_image] ^= 1;
  const auto always = [](const Entry&, const Entry&) { return true; };
  auto bundle = open_bundle(bytes);
  LookupResult found = bundle->lookup_any_compiler(entries[0].key.source, always);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit);
  EXPECT_EQ(found.entry->key, entries[1].key);

  bytes[bytes.size() - 40] ^= 1;
  bundle = open_bundle(bytes);
  found = bundle->lookup_any_compiler(entries[0].key.source, always);
  EXPECT_EQ(found.outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(found.corruption, Corruption::kChecksum);
}

TEST(BundleTest, TruncationAtEveryByteIsFoundOnOpening) {
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

TEST(BundleTest, AppendedBytesAreFound) {
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
TEST(BundleTest, NoFlippedBitYieldsWrongBytes) {
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

TEST(BundleTest, SwappedEntriesAreCorrupt) {
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
TEST(BundleTest, AReplacedEntryIsCorrupt) {
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

TEST(BundleTest, MagicVersionAndFlagsAreCheckedBeforeTheRest) {
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

TEST(BundleTest, NumbersAtIntegerLimitsAreFound) {
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

TEST(BundleTest, ACountWhoseBytesWrapAroundIsFoundBeforeTheIndexIsRead) {
  for (uint64_t bytes_each : {112, 240}) {
    std::string bytes = bundle_of(example_entries(3));
    put(&bytes, 16, UINT64_MAX / bytes_each + 1);
    expect_refused(bytes, "claims " + std::to_string(UINT64_MAX / bytes_each + 1) + " entries");
  }
}

TEST(BundleTest, AnotherCountWithARightDigestIsFound) {
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

TEST(BundleTest, AnIndexOutOfOrderOrWithTwoOfAKindIsFound) {
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

TEST(BundleTest, GapsAndOverlapsAreFound) {
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

TEST(BundleTest, AnItemSmallerThanAnyEntryIsFound) {
  std::string bytes = bundle_of(example_entries(2));
  const uint64_t begin = 64 + 2 * 112;
  const uint64_t size = load_little_endian(bytes, 64 + 72, 8);
  put(&bytes, 64 + 72, 127);
  put(&bytes, 64 + 112 + 64, begin + 127);
  put(&bytes, 64 + 112 + 72, 2 * size - 127);
  fix_digests(&bytes, 2);
  expect_refused(bytes, "item 0 of its index has size 127, must be in [128, 268435456]");
}

TEST(BundleTest, ASignatureByATrustedKeyIsAccepted) {
  const std::vector<Entry> entries = example_entries(2);
  const FakeSigner signer(1);
  const std::string bytes = signed_by(bundle_of(entries), signer);
  BundleOptions options;
  options.trusted_keys = {FakeSigner(2).public_key(), signer.public_key()};
  options.verifier = std::make_shared<FakeVerifier>();
  options.require_signed = true;
  const auto bundle = open_bundle(bytes, options);
  EXPECT_EQ(bundle->signature().verdict, SignatureVerdict::kTrusted);
  EXPECT_EQ(bundle->signature().key, signer.public_key());
  expect_serves(*bundle, entries);
  EXPECT_TRUE(bundle->verify());
}

TEST(BundleTest, AnInvalidSignatureByATrustedKeyIsAlwaysRefused) {
  const FakeSigner signer(1);
  const std::string bundle = bundle_of(example_entries(2));
  const std::string good = signed_by(bundle, signer);
  BundleOptions options;
  options.trusted_keys = {signer.public_key()};
  options.verifier = std::make_shared<FakeVerifier>();
  const std::string sentence =
      "signature by the trusted key " + to_hex(signer.public_key()) + ": the signature is wrong";
  for (size_t i = good.size() - 64; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] ^= 1;
    expect_refused(damaged, sentence, options);
  }
  // The signature of another bundle.
  const std::string other = signed_by(bundle_of(example_entries(3)), signer);
  expect_refused(bundle + other.substr(other.size() - 104), sentence, options);
  // Of an entry whose checksum is this bundle's digest.
  const Digest digest = digest_at(bundle, 32);
  expect_refused(bundle + make_signature_block(entry_message(digest), signer).value(), sentence,
                 options);
}

TEST(BundleTest, WithoutAVerifierATrustedSignatureIsRefused) {
  const FakeSigner signer(1);
  const std::string bytes = signed_by(bundle_of({}), signer);
  BundleOptions options;
  options.trusted_keys = {signer.public_key()};
  const auto bundle = Bundle::open_memory(bytes, options);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.status().code(), StatusCode::kUnsupported);
}

TEST(BundleTest, AnUnknownKeyCountsAsUnsigned) {
  const std::string bytes = signed_by(bundle_of(example_entries(1)), FakeSigner(1));
  BundleOptions options;
  options.trusted_keys = {FakeSigner(2).public_key()};
  options.verifier = std::make_shared<FakeVerifier>();
  EXPECT_EQ(open_bundle(bytes, options)->signature().verdict, SignatureVerdict::kUnknownKey);

  options.require_signed = true;
  auto refused = Bundle::open_memory(bytes, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::kCacheError);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("must be signed by a trusted key, is signed by the unknown key 0101"));
  const std::string without_signature = bundle_of(example_entries(1));
  refused = Bundle::open_memory(without_signature, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::kCacheError);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("must be signed by a trusted key, is not signed"));
}

}  // namespace
}  // namespace pagejit::cache
