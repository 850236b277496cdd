#include "cache/signature.h"

#include <gtest/gtest.h>

#include "tests/cache/bundle_test_util.h"

namespace pagejit::cache {
namespace {

class SignatureTest : public testing::Test {
 protected:
  SignedEntry check(std::string_view bytes) const {
    return check_signed_entry(bytes, trusted_, &verifier_);
  }

  const FakeSigner signer_{1};
  const std::vector<PublicKey> trusted_ = {FakeSigner(7).public_key(), signer_.public_key()};
  const FakeVerifier verifier_{};
  const std::string entry_ = encode_entry(example_entry(1)).value();
  const std::string signed_ = entry_ + sign_entry(entry_, signer_).value();
};

TEST_F(SignatureTest, BlockAndMessagesAreAsTheGrammarSays) {
  Digest digest;
  digest.fill(0x55);
  const std::string message = entry_message(digest);
  EXPECT_EQ(message, std::string("pagejit entry 1\0", 16) + std::string(32, 0x55));
  EXPECT_EQ(bundle_message(digest), std::string("pagejit bundle 1\0", 17) + std::string(32, 0x55));
  const Signature signature = FakeSigner::signature(message, signer_.public_key());
  EXPECT_EQ(make_signature_block(message, signer_).value(),
            "PJKSIGN1" + std::string(32, 1) + std::string(signature.begin(), signature.end()));
}

TEST_F(SignatureTest, ASignedEntryIsSplitAndTrusted) {
  const SignedEntry result = check(signed_);
  EXPECT_EQ(result.signature.verdict, SignatureVerdict::kTrusted);
  EXPECT_EQ(result.signature.key, signer_.public_key());
  EXPECT_EQ(result.entry, entry_);
}

TEST_F(SignatureTest, AnEntryAloneIsUnsigned) {
  const SignedEntry result = check(entry_);
  EXPECT_EQ(result.signature.verdict, SignatureVerdict::kUnsigned);
  EXPECT_EQ(result.entry, entry_);
}

TEST_F(SignatureTest, AnUnknownKeyIsSaid) {
  const std::string bytes = entry_ + sign_entry(entry_, FakeSigner(3)).value();
  const SignedEntry result = check(bytes);
  EXPECT_EQ(result.signature.verdict, SignatureVerdict::kUnknownKey);
  EXPECT_EQ(result.entry, entry_);
  EXPECT_TRUE(result.signature.status);
}

TEST_F(SignatureTest, NoFlippedBitStaysTrustedAndDecodes) {
  for (size_t i = 0; i < signed_.size(); ++i) {
    std::string damaged = signed_;
    damaged[i] ^= 0x10;
    const SignedEntry result = check(damaged);
    const bool decodes = decode_entry(result.entry).is_ok();
    ASSERT_FALSE(result.signature.verdict == SignatureVerdict::kTrusted && decodes) << i;
    // In the signature itself, and in what it signs.
    if (i >= signed_.size() - 64 || (i >= 96 && i < 128)) {
      ASSERT_EQ(result.signature.verdict, SignatureVerdict::kInvalid) << i;
      ASSERT_EQ(result.signature.status.code(), StatusCode::kDataCorrupt);
    }
  }
}

TEST_F(SignatureTest, TheSignatureOfAnotherEntryIsInvalid) {
  const std::string other = encode_entry(example_entry(2)).value();
  EXPECT_EQ(check(entry_ + sign_entry(other, signer_).value()).signature.verdict,
            SignatureVerdict::kInvalid);
}

TEST_F(SignatureTest, WhatIsNoBlockStaysWithTheEntry) {
  for (size_t size = 0; size < signed_.size(); ++size) {
    if (size == entry_.size()) continue;
    const SignedEntry result = check(std::string_view(signed_).substr(0, size));
    ASSERT_EQ(result.signature.verdict, SignatureVerdict::kUnsigned);
    ASSERT_EQ(result.entry.size(), size);
    ASSERT_FALSE(decode_entry(result.entry));
  }
  const SignedEntry garbage = check(entry_ + std::string(104, 'x'));
  EXPECT_EQ(garbage.signature.verdict, SignatureVerdict::kUnsigned);
  EXPECT_EQ(garbage.entry.size(), signed_.size());
}

TEST_F(SignatureTest, LengthsAtIntegerLimitsAreNoEntry) {
  for (uint64_t value : {UINT64_MAX, UINT64_MAX - 103, uint64_t{INT64_MAX}, kMaxEntryBytes + 0ul}) {
    for (size_t field : {16, 24}) {
      std::string damaged = signed_;
      put(&damaged, field, value);
      EXPECT_EQ(check(damaged).signature.verdict, SignatureVerdict::kUnsigned);
    }
  }
}

TEST_F(SignatureTest, WithoutAVerifierNothingIsTrusted) {
  const SignedEntry result = check_signed_entry(signed_, trusted_, nullptr);
  EXPECT_EQ(result.signature.verdict, SignatureVerdict::kInvalid);
  EXPECT_EQ(result.signature.status.code(), StatusCode::kUnsupported);
}

TEST_F(SignatureTest, TooFewBytesAreNotSigned) {
  EXPECT_EQ(sign_entry("PJKENTRY", signer_).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SignatureTest, PublicKeysAreReadFromHex) {
  const std::string hex = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
  const Result<PublicKey> key = parse_public_key(hex);
  ASSERT_TRUE(key);
  EXPECT_EQ((*key)[1], 0x11);
  EXPECT_EQ((*key)[31], 0xff);
  for (const std::string& bad : {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1)}) {
    EXPECT_EQ(parse_public_key(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(parse_public_key("\x1b[31m\xff").status().message(),
            "public key \"?[31m?\": must be 64 hexadecimal digits");
}

TEST_F(SignatureTest, EveryVerdictHasAName) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(signature_verdict_name(static_cast<SignatureVerdict>(i)), "unknown verdict");
  }
}

}  // namespace
}  // namespace pagejit::cache
