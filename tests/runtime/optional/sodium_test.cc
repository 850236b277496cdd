// Ed25519 by the real libsodium, which tools/setup.sh installs.
#include "runtime/optional/sodium.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cache/bundle.h"
#include "cache/bundle_writer.h"
#include "cache/entry.h"

namespace pagejit {
namespace {

using testing::HasSubstr;

SigningSeed seed_of(std::string_view hex) { return cache::digest_from_hex(hex).value(); }

std::unique_ptr<cache::Signer> signer_of(const SigningSeed& seed) {
  Result<std::unique_ptr<cache::Signer>> signer = make_sodium_signer(seed);
  EXPECT_TRUE(signer) << signer.status().to_string();
  return signer ? std::move(signer).value() : nullptr;
}

std::string hex_of(const cache::Signature& signature) {
  return cache::to_hex(std::string_view(reinterpret_cast<const char*>(signature.data()), 64));
}

// RFC 8032, section 7.1, tests 1 and 3.
TEST(SodiumTest, SignsAsTheStandardSays) {
  const auto first =
      signer_of(seed_of("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
  EXPECT_EQ(cache::to_hex(first->public_key()),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_EQ(hex_of(first->sign("").value()),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
  const auto third =
      signer_of(seed_of("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"));
  EXPECT_EQ(cache::to_hex(third->public_key()),
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
  EXPECT_EQ(hex_of(third->sign("\xaf\x82").value()),
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a");
}

TEST(SodiumTest, OnlyTheSignedMessageVerifies) {
  const auto signer = signer_of(SigningSeed{1});
  const auto other = signer_of(SigningSeed{2});
  const auto verifier = make_sodium_verifier();
  const cache::Signature good = signer->sign("message").value();
  EXPECT_TRUE(verifier->verify("message", signer->public_key(), good));
  EXPECT_EQ(verifier->verify("massage", signer->public_key(), good).code(),
            StatusCode::kDataCorrupt);
  EXPECT_EQ(verifier->verify("message", other->public_key(), good).code(),
            StatusCode::kDataCorrupt);
  EXPECT_EQ(verifier->verify("message", cache::PublicKey{}, good).code(), StatusCode::kDataCorrupt);
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      cache::Signature bad = good;
      bad[i] = static_cast<uint8_t>(bad[i] ^ (1 << bit));
      ASSERT_EQ(verifier->verify("message", signer->public_key(), bad).code(),
                StatusCode::kDataCorrupt)
          << i << " " << bit;
    }
  }
}

TEST(SodiumTest, SeveralThreadsOpenItAtOnce) {
  const auto signer = signer_of(SigningSeed{1});
  const cache::Signature signature = signer->sign("message").value();
  const auto verifier = make_sodium_verifier();
  std::vector<std::thread> threads;
  std::atomic<int> num_good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (verifier->verify("message", signer->public_key(), signature)) ++num_good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_good, 8);
}

TEST(SodiumTest, AMissingLibraryIsSaidWithItsPackage) {
  for (const std::vector<std::string>& candidates :
       {std::vector<std::string>{"libsodium.so.none"},
        std::vector<std::string>{"libsodium.so.none", "libc.so.6"}, std::vector<std::string>{}}) {
    const auto signer = make_sodium_signer(SigningSeed{}, candidates);
    ASSERT_FALSE(signer);
    EXPECT_EQ(signer.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(signer.status().message(), HasSubstr("apt-get install libsodium23"));
    const auto verifier = make_sodium_verifier(candidates);
    const Status status = verifier->verify("", cache::PublicKey{}, cache::Signature{});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("libsodium23"));
  }
}

TEST(SodiumTest, SignsBundlesAndEntries) {
  cache::Entry entry{{}, "metadata", "image"};
  cache::BundleWriter writer;
  ASSERT_TRUE(writer.add(entry));
  std::string bytes;
  ASSERT_TRUE(writer.write_to([&](std::string_view piece) {
    bytes += piece;
    return Status::ok();
  }));
  const auto signer = signer_of(SigningSeed{1});
  const std::string message = cache::bundle_message(cache::digest_at(bytes, 32));
  bytes += cache::make_signature_block(message, *signer).value();

  cache::BundleOptions options;
  options.require_signed = true;
  options.verifier = make_sodium_verifier();
  options.trusted_keys = {signer->public_key()};
  const auto bundle = cache::Bundle::open_memory(bytes, options);
  ASSERT_TRUE(bundle) << bundle.status().to_string();
  EXPECT_EQ((*bundle)->signature().verdict, cache::SignatureVerdict::kTrusted);
  // Every bit of the block is either of the signature, or of a key that is then another.
  for (size_t i = bytes.size() - cache::kSignatureBlockBytes; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 4;
    EXPECT_FALSE(cache::Bundle::open_memory(damaged, options)) << i;
  }

  const std::string encoded = cache::encode_entry(entry).value();
  std::string signed_entry = encoded + cache::sign_entry(encoded, *signer).value();
  const auto check = [&] {
    return cache::check_signed_entry(signed_entry, options.trusted_keys, options.verifier.get())
        .signature.verdict;
  };
  EXPECT_EQ(check(), cache::SignatureVerdict::kTrusted);
  signed_entry.back() ^= 1;
  EXPECT_EQ(check(), cache::SignatureVerdict::kInvalid);
}

}  // namespace
}  // namespace pagejit
