// Bundles in memory: the grammar, and what is not one.
#include "cache/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/cache/bundle_test_util.h"

namespace pagejit::cache {
namespace {

using testing::HasSubstr;

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
  for (const uint8_t compiler : std::initializer_list<uint8_t>{9, 5, 7}) {
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
